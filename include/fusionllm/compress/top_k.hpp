// SPDX-License-Identifier: Apache-2.0
// Top-k compressors: the entries of largest magnitude, of each row (token) or of the tensor, their positions packed.
// AdaTopK after FusionLLM: the ratio differs by link and direction (schedule/adaptive_codecs.hpp); cotangents are sent within the
// mask of the forward frame, as values alone where all of them fit. Measured on a small GPT, selection by token costs
// less loss than by tensor, and int8 values cost nothing, so that they are the defaults.
#pragma once

#include <string_view>
#include <vector>

#include "compressor.hpp"
#include "selection.hpp"
#include "top_k_shape.hpp"

namespace fusionllm::inline v0 {

namespace detail {

struct top_k_compressor {
  using seat = compressor_seat;
  struct state {
    top_k_selector selector;
    std::vector<u32> positions;
    std::vector<float> values;
  };

  i64 thousandths = 10'000;
  i64 keep = -1;
  selection_scope scope = selection_scope::row;
  value_coding values = value_coding::int8;
  thread_team* team = nullptr;

  void set_ratio(double ratio) { thousandths = ratio_in_thousandths(ratio); }
  top_k_shape shape(const matrix_extent& e) const { return shape_of_top_k(e, thousandths, keep, scope, values); }
  i64 body_bytes(const matrix_extent& e) const { return shape(e).bytes; }
  i64 max_body_bytes(const matrix_extent& e) const { return 4 * e.elements(); }
  i64 kept(const matrix_extent& e) const { return shape(e).count; }

  body_form encode(state& s, const matrix_in& x, std::vector<std::byte>& frame, mask* made) const {
    const top_k_shape shape_ = shape(x.extent);
    const body_form form{shape_.values, shape_.positions, shape_.by_row, 0, shape_.count};
    const i64 n = x.extent.elements();
    std::byte* body = extend(frame, shape_.bytes);
    const float* kept_values = x.data;
    if (shape_.count < n) {
      if (shape_.by_row) {
        s.selector.select_rows(x.data, x.extent.rows, x.extent.columns, shape_.k, team, made->positions);
      } else {
        s.selector.select(x.data, n, shape_.k, team, made->positions);
      }
      made->all = false;
      made->per_row = shape_.by_row ? shape_.k : 0;
      if (i64(s.values.size()) < shape_.count) s.values.resize(std::size_t(shape_.count));
      float* to = s.values.data();
      for (u32 p : made->positions) *to++ = x.data[p];
      kept_values = s.values.data();
      write_positions(form.positions, made->positions, n, body);
      body += position_bytes(form.positions, n, shape_.count);
    }
    body_form written = form;
    written.exponent = write_values(form.values, kept_values, shape_.count, body);
    return written;
  }

  void decode(state& s, const body_form& form, const_byte_span body, const matrix_out& y, mask* seen) const {
    const i64 n = y.extent.elements();
    if (form.positions == position_coding::dense) {
      check_size(form, body, y.extent);
      return read_values(form.values, form.exponent, body.data(), n, y.data);
    }
    const float* values_ = decode_entries(s, form, body, y.extent, seen);
    for (i64 i = 0; i < n; ++i) y.data[i] = 0;
    for (i64 i = 0; i < form.count; ++i) y.data[seen->positions[std::size_t(i)]] = values_[i];
  }

  /// The values of the entries that `seen` then names.
  const float* decode_entries(state& s, const body_form& form, const_byte_span body, const matrix_extent& e,
                              mask* seen) const {
    const i64 n = e.elements(), k = form.count;
    check_size(form, body, e);
    const bool dense = form.positions == position_coding::dense;
    if (!dense) {
      seen->all = false;
      seen->per_row = form.even_rows ? k / e.rows : 0;
      seen->positions.resize(std::size_t(k));
      read_positions(form.positions, body.data(), n, k, seen->positions.data());
      if (form.even_rows) check_rows(*seen, e);
    }
    if (i64(s.values.size()) < k) s.values.resize(std::size_t(k));
    read_values(form.values, form.exponent, body.data() + position_bytes(form.positions, n, k), k, s.values.data());
    return s.values.data();
  }

 private:
  static void check_size(const body_form& form, const_byte_span body, const matrix_extent& e) {
    const i64 n = e.elements(), k = form.count, expected = check(form, n, e.rows);
    if (i64(body.size()) != expected)
      fail(errc::protocol, "a top-k frame of ", k, " of ", n, " entries has a body of ", body.size(),
           " bytes: expected ", expected);
  }
  /// The bytes of a body of this form. No form that `encode` does not make is accepted.
  static i64 check(const body_form& form, i64 n, i64 rows) {
    const i64 k = form.count;
    const bool coded =
        form.values == value_coding::f32 || form.values == value_coding::f16 || form.values == value_coding::int8;
    const bool even = !form.even_rows || (rows > 0 ? k % rows == 0 : k == 0);
    if (!coded || k > n || form.positions != best_position_coding(n, k) || !even)
      fail(errc::protocol, "a top-k frame of ", k, " of ", n, " entries in ", rows, " rows, value coding ",
           int(form.values), ", position coding ", int(form.positions), ": no sender makes it");
    return value_bytes(form.values, k) + position_bytes(form.positions, n, k);
  }

  /// Ascending positions hold k a row when each row's first and last lie in it.
  static void check_rows(const mask& m, const matrix_extent& e) {
    for (i64 row = 0; m.per_row > 0 && row < e.rows; ++row) {
      const i64 first = m.positions[std::size_t(row * m.per_row)],
                last = m.positions[std::size_t((row + 1) * m.per_row - 1)];
      if (first < row * e.columns || last >= (row + 1) * e.columns)
        fail(errc::protocol, "a top-k frame claims ", m.per_row, " entries a row, row ", row, " has others");
    }
  }
};

template <class C>
C top_k_from(const codec_options& options, selection_scope scope, value_coding values) {
  C c;
  c.set_ratio(options.ratio);
  c.keep = options.keep;
  c.scope = options.scope.value_or(scope);
  c.values = options.values.value_or(values);
  c.team = options.team;
  if (c.values != value_coding::f32 && c.values != value_coding::f16 && c.values != value_coding::int8)
    fail(errc::config, C::label, ": values are f32, f16 or int8");
  return c;
}

}  // namespace detail

/// The same ratio on every link.
struct uniform_top_k : detail::top_k_compressor {
  static constexpr u8 wire_id = 4;
  static constexpr std::string_view label = "uniform_top_k";
  static constexpr bool adaptive = false;
  static uniform_top_k from(const codec_options& options) {
    return detail::top_k_from<uniform_top_k>(options, selection_scope::row, value_coding::int8);
  }
};

/// A ratio for each link and direction, just high enough that no link is slower than the target; 1 sends as it is.
/// The template arguments are what holds where the options say nothing.
template <selection_scope Scope = selection_scope::row, value_coding Values = value_coding::int8>
struct ada_top_k : detail::top_k_compressor {
  static constexpr u8 wire_id = 5;
  static constexpr std::string_view label = "ada_top_k";
  static constexpr bool adaptive = true;
  static ada_top_k from(const codec_options& options) { return detail::top_k_from<ada_top_k>(options, Scope, Values); }
};

}  // namespace fusionllm::inline v0
