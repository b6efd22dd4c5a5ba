// SPDX-License-Identifier: Apache-2.0
// What a device does to vectors outside of operators, as a table, so that the runtime does not depend on a device's type.
// Every function gives the same bits for every number of threads. Results that the host reads (`found`, `number`, `sums`) are in
// host memory: of a device with memory of its own in its shared memory, and there once a ticket taken later is reached.
#pragma once

#include <span>

#include "adamw.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// One update's numbers, the same for all parameters but for the decay.
struct update_scalars {
  u64 step = 0;               ///< 0, 1, ...
  double learning_rate = 0;
  double gradient_scale = 1;  ///< of global-norm clipping
  double momentum = 0;        ///< sgd
  adamw_settings adamw;       ///< with the decay of all parameters that decay
};

/// A parameter and its state, in the device's memory: `count` elements each of the type of weights.
struct parameter_update {
  void* weight = nullptr;
  const void* gradient = nullptr;
  void *m = nullptr, *v = nullptr;  ///< sgd has no v
  i64 count = 0;
  bool decays = false;
};
using parameter_updates = std::span<const parameter_update>;

/// What weights, their gradients and optimizer state are where activations are `real`.
constexpr dtype weights_beside(dtype real) { return real == dtype::f64 ? dtype::f64 : dtype::f32; }
/// The type of a node's output where activations are `real`. The loss stays fp32 beside 16 bits: they round it by 0.4 %.
constexpr dtype type_of(const graph_view& g, int i, dtype real) {
  const node& n = g.nodes[std::size_t(i)];
  return n.type == element::i32 ? dtype::int32 : i == g.loss && n.op->loss ? weights_beside(real) : real;
}

struct vector_functions {
  /// out = a + b, n elements; out may be a or b.
  void (*add)(device_context&, dtype, void* out, const void* a, const void* b, i64 n);
  /// *found becomes 1 if x holds an infinity or a NaN, and else stays what it was.
  void (*search)(device_context&, dtype, const void* x, i64 n, u32* found);
  void (*zero)(device_context&, void* x, u64 bytes);
  /// *number, which the host reads, becomes *x.
  void (*widen)(device_context&, dtype, const void* x, double* number);
  /// w = kept w + g, of a running statistic.
  void (*decay)(device_context&, void* w, const void* g, i64 n, double kept);
  /// sums[i] = the sum of squares of gradient i.
  void (*sums_of_squares)(device_context&, parameter_updates, double* sums);
  void (*adamw)(device_context&, parameter_updates, const update_scalars&);
  void (*sgd)(device_context&, parameter_updates, const update_scalars&);
};

}  // namespace fusionllm::inline v0
