// SPDX-License-Identifier: Apache-2.0
// What a frame says, apart from the tensor that it becomes; for devices that place entries themselves.
#pragma once

#include "masking.hpp"
#include "top_k_shape.hpp"

namespace fusionllm::inline v0 {

/// The extents of a tensor and of its forward mask, whose positions may lie elsewhere.
struct mask_outline {
  i64 rows = 0;
  i64 columns = 0;
  bool restricts = false;  ///< there is a forward mask that leaves something out
  i64 count = 0;           ///< its entries
  bool even = false;       ///< each row has as many

  /// The matrix that is encoded: the tensor, or the entries of the mask.
  matrix_extent inside() const {
    if (!restricts) return {rows, columns, rows * columns};
    return detail::masked_extent(rows, rows * columns, count, even);
  }
};

/// `values` of the entries that `kept`, a mask of the inside matrix, names; as fp32, or as `bytes` of the tensor's type.
struct frame_parts {
  const float* values = nullptr;
  const_byte_span bytes;
  const mask* kept = nullptr;
};

}  // namespace fusionllm::inline v0
