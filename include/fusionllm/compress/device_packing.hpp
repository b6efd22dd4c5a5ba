// SPDX-License-Identifier: Apache-2.0
// What a device with memory of its own does for frames, so that only encoded bytes cross to the host: the steps of a
// codec, each one call. All pointers are of the device's memory, aligned to 256 bytes where something is written; calls
// return before the work is done, which runs in their order.
#pragma once

#include "../device/device_memory.hpp"
#include "tensor.hpp"
#include "value_coding.hpp"

namespace fusionllm::inline v0 {

class device_packing {
 public:
  virtual ~device_packing() = default;
  virtual device_memory& memory() = 0;

  /// The k entries of largest magnitude of x, or of each row, the lowest first among equals: their positions in x,
  /// ascending. `workspace`: `select_bytes(n, k)`; of rows: none.
  virtual void select(const float* x, i64 n, i64 k, u32* positions, void* workspace) = 0;
  virtual u64 select_bytes(i64 n, i64 k) = 0;
  virtual void select_rows(const float* x, i64 rows, i64 columns, i64 k, u32* positions) = 0;

  /// out[i] = x[positions[i]], and the inverse, where entries of out without a position become 0.
  virtual void pick(const void* x, std::size_t element_bytes, const u32* positions, i64 k, void* out) = 0;
  virtual void place(const void* x, std::size_t element_bytes, const u32* positions, i64 k, void* out, i64 n) = 0;
  /// inner[i] = outer[inner[i]]
  virtual void compose(const u32* outer, u32* inner, i64 k) = 0;

  /// The `low` low bits of each position, one after another.
  virtual void low_bits(const u32* positions, i64 k, int low, u32* out) = 0;
  /// One bit a position: bit (position >> shift), plus the position's index if `spread`. `bytes`: of out, a multiple of 4.
  virtual void set_bits(const u32* positions, i64 k, int shift, bool spread, u32* out, u64 bytes) = 0;

  /// n finite values as `write_values` writes them. *exponent, in shared memory, becomes the scale of the frame;
  /// `scratch`: `value_scratch_bytes`.
  virtual void write_values(value_coding coding, const float* v, i64 n, void* out, int* exponent, void* scratch) = 0;
  static constexpr u64 value_scratch_bytes = 4096;

  /// Between fp32 and another real type, clamped to its largest finite value.
  virtual void to_f32(const void* x, dtype type, i64 n, float* out) = 0;
  virtual void from_f32(const float* x, dtype type, i64 n, void* out) = 0;
};

}  // namespace fusionllm::inline v0
