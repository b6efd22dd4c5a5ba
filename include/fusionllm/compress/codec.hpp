// SPDX-License-Identifier: Apache-2.0
// A codec encodes and decodes the tensors of one direction of a link: the form in which configuration chooses among
// compressors at run time. Not for two threads at once. In a steady step it allocates nothing.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codec_options.hpp"
#include "frame_parts.hpp"
#include "tensor.hpp"

namespace fusionllm::inline v0 {

class codec {
 public:
  virtual ~codec() = default;

  virtual std::string_view label() const = 0;
  virtual u8 wire_id() const = 0;
  /// Whether what arrives is what was sent, bit for bit.
  virtual bool lossless() const = 0;
  /// Whether its ratio is meant to be chosen a link and direction (schedule/adaptive_codecs.hpp).
  virtual bool adaptive() const = 0;
  /// Takes effect with the next encode. Ignored where there is nothing to choose. Errors: errc::config.
  virtual void set_ratio(double ratio) = 0;

  /// Replaces `frame` by the encoding of `x`: one frame a tensor. With a forward mask only its entries are sent.
  /// `made`, if not null, becomes the mask of what was sent, a subset of the forward mask.
  /// Errors: errc::numeric naming the first infinity or NaN; errc::model for extents that do not fit the mask;
  /// errc::resource for more entries than the limits allow.
  virtual void encode(const tensor_in& x, const link_context& context, std::vector<std::byte>& frame, mask* made) = 0;

  /// The inverse, into `x`, with the same context; entries that were not sent become 0 (or what is known of them).
  /// `seen`, if not null, becomes the sender's `made`. Errors: errc::protocol for bytes that no sender writes for this
  /// tensor; `x` may then hold anything.
  virtual void decode(const_byte_span frame, const tensor_out& x, const link_context& context, mask* seen) = 0;

  /// Bytes that a frame never exceeds.
  virtual i64 max_encoded_bytes(i64 rows, i64 columns, dtype type = dtype::f32) const = 0;

  /// Bytes of a frame, for the planner: exact for every built-in compressor. `masked`: entries of the forward mask
  /// that the frame is restricted to, negative for no mask; `even_rows` whether each row has as many of them.
  virtual i64 encoded_bytes(i64 rows, i64 columns, i64 masked = -1, bool even_rows = true) const = 0;

  /// Entries of the mask that a forward frame makes.
  virtual i64 kept(i64 rows, i64 columns) const = 0;

  /// For devices that pack frames themselves (device_codec.hpp): how a frame of such a matrix is made, or nothing where
  /// only `encode` knows; and what a frame says, checked as `decode` checks it, valid until the next call.
  virtual std::optional<top_k_shape> shape_of(dtype, const matrix_extent&) const { return {}; }
  virtual frame_parts parts_of(const_byte_span, dtype, const mask_outline&) {
    fail(errc::internal, label(), " does not tell the parts of a frame");
  }

  /// The same for fp32 matrices in memory.
  void encode(const float* x, i64 rows, i64 columns, const mask* forward, const known_tensor* known,
              std::vector<std::byte>& frame, mask* made) {
    encode(tensor_in{x, dtype::f32, rows, columns}, link_context{forward, known}, frame, made);
  }
  void decode(const_byte_span frame, float* x, i64 rows, i64 columns, const mask* forward, mask* seen) {
    decode(frame, tensor_out{x, dtype::f32, rows, columns}, link_context{forward, nullptr}, seen);
  }
};

}  // namespace fusionllm::inline v0
