// SPDX-License-Identifier: Apache-2.0
// What crosses the compress layer: contiguous matrices (a row is a token), masks of their entries, limits.
// It owns no tensor memory.
#pragma once

#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// What a compressor is told about a matrix: fp32 (rows, columns). A matrix may be the masked part of a tensor; `whole`
/// is then the number of entries of that tensor, to which ratios refer.
struct matrix_extent {
  i64 rows = 0;
  i64 columns = 0;
  i64 whole = 0;
  i64 elements() const { return rows * columns; }
};

struct matrix_in {
  const float* data = nullptr;  // (rows, columns), finite
  matrix_extent extent;
};

struct matrix_out {
  float* data = nullptr;  // (rows, columns)
  matrix_extent extent;
};

/// A tensor to send: `data` is contiguous, rows * columns elements of `type`.
struct tensor_in {
  const void* data = nullptr;
  dtype type = dtype::f32;
  i64 rows = 0;
  i64 columns = 0;
};

/// A place for a tensor to arrive in.
struct tensor_out {
  void* data = nullptr;
  dtype type = dtype::f32;
  i64 rows = 0;
  i64 columns = 0;
};

/// Which entries of a (rows, columns) tensor an encoding kept. A forward mask is what the cotangents of the tensor are
/// restricted to, so both ends of a link keep it until the backward frame has passed.
struct mask {
  i64 rows = 0;
  i64 columns = 0;
  bool all = true;               ///< every entry; `positions` is then empty
  i64 per_row = 0;               ///< entries of each row where every row has as many, else 0
  std::vector<u32> positions{};  ///< row * columns + column, ascending

  i64 count() const { return all ? rows * columns : i64(positions.size()); }
  void keep_all(i64 all_rows, i64 all_columns) {
    rows = all_rows;
    columns = all_columns;
    all = true;
    per_row = all_columns;
    positions.clear();
  }
};

/// A tensor that both ends have, bit for bit, before a frame is made (the embedding of the tokens): frames then carry
/// the difference to it. fp32, of the extents of the tensor.
struct known_tensor {
  const float* data = nullptr;
};

/// What a link is told beside the tensor itself.
struct link_context {
  const mask* forward = nullptr;        ///< the mask of the forward frame of this edge; null on the way forward
  const known_tensor* known = nullptr;  ///< null: the tensor itself is sent
};

/// Checked before anything is allocated. Positions are 32-bit, so that tensors stay below 2^32 entries.
struct codec_limits {
  i64 max_elements = 0xFFFFFFFF;
};

}  // namespace fusionllm::inline v0
