// SPDX-License-Identifier: Apache-2.0
// The 20 bytes that every encoded tensor begins with, little-endian:
//    0 u8  wire id of the compressor     4 u8  element type of the tensor    12 u32 columns
//    1 u8  value coding                  5 u8  0                             16 u32 count: entries in the body
//    2 u8  position coding               6 i16 scale exponent
//    3 u8  flags                         8 u32 rows
// The receiver knows the tensor it waits for, so that a header can only agree or be refused: no size in it leads to an
// allocation.
#pragma once

#include <span>

#include "../core/bytes.hpp"
#include "positions.hpp"
#include "tensor.hpp"
#include "values.hpp"

namespace fusionllm::inline v0 {

inline constexpr i64 payload_header_bytes = 20;

/// What a compressor says about the body it wrote, and is told when it reads one.
struct body_form {
  value_coding values = value_coding::own;
  position_coding positions = position_coding::dense;
  bool even_rows = false;  ///< every row holds count / rows entries
  int exponent = 0;        ///< of the scale, 16 bits
  i64 count = 0;           ///< entries in the body
};

struct payload_header {
  u8 wire_id = 0;
  dtype type = dtype::f32;
  bool masked = false;      ///< the body is of the entries of the forward mask
  bool difference = false;  ///< the body is of the difference to a known tensor
  i64 rows = 0;
  i64 columns = 0;
  body_form form;

  void write(std::byte* out) const {
    out[0] = std::byte(wire_id);
    out[1] = std::byte(form.values);
    out[2] = std::byte(form.positions);
    out[3] = std::byte(u8(masked) | u8(difference) << 1 | u8(form.even_rows) << 2);
    out[4] = std::byte(type);
    out[5] = std::byte(0);
    store_little(out + 6, u16(form.exponent));
    store_little(out + 8, u32(rows));
    store_little(out + 12, u32(columns));
    store_little(out + 16, u32(form.count));
  }

  /// Errors: errc::protocol when the bytes are too few or say what no header says.
  static payload_header read(const_byte_span frame) {
    if (i64(frame.size()) < payload_header_bytes)
      fail(errc::protocol, "an encoded tensor has ", frame.size(), " bytes: its header alone has ",
           payload_header_bytes);
    const auto byte = [&](std::size_t at) { return std::to_integer<u8>(frame[at]); };
    payload_header h;
    h.wire_id = byte(0);
    const bool known_values = byte(1) <= u8(value_coding::int8) || byte(1) == u8(value_coding::own);
    if (!known_values || byte(2) > u8(position_coding::elias_fano) || byte(3) > 7 || byte(4) > u8(dtype::int8)
        || byte(5) != 0)
      fail(errc::protocol,
           "the header of an encoded tensor has an unknown coding, type or flag (bytes 1 to 5: ", int(byte(1)), ' ',
           int(byte(2)), ' ', int(byte(3)), ' ', int(byte(4)), ' ', int(byte(5)), "): it is damaged");
    h.form.values = value_coding(byte(1));
    h.form.positions = position_coding(byte(2));
    h.masked = (byte(3) & 1) != 0;
    h.difference = (byte(3) & 2) != 0;
    h.form.even_rows = (byte(3) & 4) != 0;
    h.type = dtype(byte(4));
    h.form.exponent = static_cast<std::int16_t>(load_little<u16>(frame.data() + 6));
    h.rows = load_little<u32>(frame.data() + 8);
    h.columns = load_little<u32>(frame.data() + 12);
    h.form.count = load_little<u32>(frame.data() + 16);
    return h;
  }
};

/// Appends `bytes` bytes to a frame and returns where they are.
inline std::byte* extend(std::vector<std::byte>& frame, i64 bytes) {
  const std::size_t at = frame.size();
  frame.resize(at + std::size_t(bytes));
  return frame.data() + at;
}

}  // namespace fusionllm::inline v0
