// SPDX-License-Identifier: Apache-2.0
// How many entries a ratio pays for. The budget is whole * 4 / ratio bytes, header included; k is the largest whose
// values and positions fit, by their exact sizes. So the bytes of a frame are known before there is a tensor.
#pragma once

#include "codec_options.hpp"
#include "payload_header.hpp"

namespace fusionllm::inline v0 {

/// The plan of one frame of a top-k compressor.
struct top_k_shape {
  value_coding values = value_coding::f32;
  position_coding positions = position_coding::dense;
  bool by_row = false;
  i64 k = 0;      ///< a row, or a tensor
  i64 count = 0;  ///< in the whole frame
  i64 bytes = 0;  ///< of the body
};

namespace detail {

inline top_k_shape sized_shape(const matrix_extent& e, value_coding values, bool by_row, i64 k) {
  const i64 n = e.elements();
  top_k_shape s{values, position_coding::dense, by_row, k, by_row ? k * e.rows : k, 0};
  s.positions = best_position_coding(n, s.count);
  s.bytes = value_bytes(values, s.count) + position_bytes(s.positions, n, s.count);
  return s;
}

}  // namespace detail

/// The shape for an extent. `keep` < 0: from the ratio, which keeps one entry at least, and sends all of them where
/// they fit: as fp32, else as fp16, else in `values`. A `keep` that would not be smaller than fp32 sends fp32.
inline top_k_shape shape_of_top_k(const matrix_extent& e, i64 thousandths, i64 keep, selection_scope scope,
                                  value_coding values) {
  const i64 n = e.elements();
  const bool by_row = scope == selection_scope::row;
  const i64 most = by_row ? e.columns : n;
  const top_k_shape raw = detail::sized_shape(e, value_coding::f32, by_row, most);
  if (n == 0) return raw;
  if (keep >= 0) {
    const top_k_shape s = detail::sized_shape(e, values, by_row, keep < most ? keep : most);
    return s.bytes < raw.bytes ? s : raw;
  }
  if (thousandths <= 1000) return raw;
  const i64 budget = e.whole * 4000 / thousandths - payload_header_bytes;
  for (value_coding coding : {value_coding::f32, value_coding::f16, values}) {
    if (coding == value_coding::f16 && values == value_coding::f32) continue;  // fp32 was asked for
    const top_k_shape dense = detail::sized_shape(e, coding, by_row, most);
    if (dense.bytes <= budget) return dense;
  }
  i64 fits = 1, above = most;  // one entry, whatever it costs: a tensor without any could not train
  while (above - fits > 1) {
    const i64 k = fits + (above - fits) / 2;
    (detail::sized_shape(e, values, by_row, k).bytes <= budget ? fits : above) = k;
  }
  return detail::sized_shape(e, values, by_row, fits);
}

}  // namespace fusionllm::inline v0
