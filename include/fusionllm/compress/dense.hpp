// SPDX-License-Identifier: Apache-2.0
// Compressors that send every entry: as it is, as fp16 with a scale a frame, as int8 in blocks of 64. The ratio is what
// it is: about 1, 2 and 3.9.
#pragma once

#include <string_view>

#include "compressor.hpp"
#include "top_k_shape.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// What the three share: one value coding for all entries.
template <value_coding Coding>
struct dense_compressor {
  using seat = compressor_seat;
  struct state {};

  i64 body_bytes(const matrix_extent& e) const { return value_bytes(Coding, e.elements()); }
  i64 max_body_bytes(const matrix_extent& e) const { return body_bytes(e); }
  top_k_shape shape(const matrix_extent& e) const {
    return {Coding, position_coding::dense, true, e.columns, e.elements(), body_bytes(e)};
  }

  body_form encode(state&, const matrix_in& x, std::vector<std::byte>& frame, mask*) const {
    const i64 n = x.extent.elements();
    if constexpr (Coding == value_coding::f32) {
      const std::byte* from = reinterpret_cast<const std::byte*>(x.data);
      frame.insert(frame.end(), from, from + 4 * n);
      return {Coding, position_coding::dense, true, 0, n};
    } else {
      const int exponent = write_values(Coding, x.data, n, extend(frame, value_bytes(Coding, n)));
      return {Coding, position_coding::dense, true, exponent, n};
    }
  }

  void decode(state&, const body_form& form, const_byte_span body, const matrix_out& y, mask*) const {
    const i64 n = y.extent.elements();
    if (form.values != Coding || form.positions != position_coding::dense || form.count != n
        || i64(body.size()) != value_bytes(Coding, n))
      fail(errc::protocol, "a dense frame of ", form.count, " values (coding ", int(form.values), ") in ", body.size(),
           " bytes: expected ", n, " (coding ", int(Coding), ") in ", value_bytes(Coding, n));
    read_values(Coding, form.exponent, body.data(), n, y.data);
  }
};

}  // namespace detail

/// Every element as it is, of any type.
struct no_compression : detail::dense_compressor<value_coding::f32> {
  static constexpr u8 wire_id = 1;
  static constexpr std::string_view label = "no_compression";
  static constexpr bool lossless = true;
};

/// fp16 with a power-of-two scale a frame.
struct half_precision : detail::dense_compressor<value_coding::f16> {
  static constexpr u8 wire_id = 2;
  static constexpr std::string_view label = "half_precision";
};

/// int8 in blocks of 64 entries.
struct int8 : detail::dense_compressor<value_coding::int8> {
  static constexpr u8 wire_id = 3;
  static constexpr std::string_view label = "int8";
};

}  // namespace fusionllm::inline v0
