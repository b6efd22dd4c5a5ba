// SPDX-License-Identifier: Apache-2.0
// What attention's kernels read and write: where the heads of queries, keys and values lie, as a GPU kernel takes it, and
// how much of them a team takes at a time.
#pragma once

#include <fusionllm/device/attention_layout.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

/// Heads that are wider have no kernel.
inline constexpr i64 widest_head = 256;
/// Heads are padded with zeros to one of these widths.
constexpr int padded_width(i64 width) { return width <= 64 ? 64 : width <= 128 ? 128 : 256; }

namespace detail {

/// Rows of a tile of heads of width W, so that all tiles fit in 48 KiB.
template <class E, int W>
struct attention_tiles {
  static constexpr bool narrow = sizeof(E) == 2;
  static constexpr int queries = narrow ? (W == 64 ? 64 : 32) : 4096 / W;  ///< forward
  static constexpr int keys = narrow ? (W == 256 ? 16 : 32) : 2048 / W;
  static constexpr int edge = narrow ? (W == 256 ? 16 : 32) : 2048 / W;    ///< backward, of both
};

/// Queries, keys and values, or their cotangents. Null: not wanted.
template <class T>
struct attention_heads {
  T *q, *k, *v;
  attention_part q_part, k_part, v_part;
  i64 width;

  attention_heads(const std::array<tensor_ref, max_inputs>& x, const attention_layout& s)
      : q(x[0].template as<T>()), k(x[s.side_by_side ? 0 : 1].template as<T>()),
        v(x[s.side_by_side ? 0 : 2].template as<T>()), q_part(s.q), k_part(s.k), v_part(s.v), width(s.width) {}

  FL_HD T* query(i64 b, i64 h, i64 t) const { return at(q, q_part, b, h, t); }
  FL_HD T* key(i64 b, i64 h, i64 t) const { return at(k, k_part, b, h, t); }
  FL_HD T* value(i64 b, i64 h, i64 t) const { return at(v, v_part, b, h, t); }

 private:
  FL_HD T* at(T* x, const attention_part& p, i64 b, i64 h, i64 t) const {
    return x + b * p.sequence + p.start + h * width + t * p.stride;
  }
};

/// The shape of one attention.
struct attention_shape {
  i64 sequences, queries, keys, offset, heads, kv_heads, group, width, features;
  float scale;
  explicit attention_shape(const attention_layout& s)
      : sequences(s.sequences), queries(s.queries), keys(s.keys), offset(s.offset), heads(s.heads),
        kv_heads(s.kv_heads), group(s.group), width(s.width), features(s.features), scale(float(s.scale)) {}
  /// In the output, and among what is saved a row.
  FL_HD i64 output_at(i64 b, i64 h, i64 t) const { return (b * queries + t) * features + h * width; }
  FL_HD i64 row_at(i64 b, i64 h, i64 t) const { return (b * heads + h) * queries + t; }
};

}  // namespace detail

}  // namespace fusionllm::inline v0
