// SPDX-License-Identifier: Apache-2.0
// `reference<T>`: every operator in plain loops of one thread, in a fixed order. It is the oracle for every other
// device, and what runs where nothing else is installed.
#pragma once

#include "reference/attention.hpp"
#include "reference/average_pool.hpp"
#include "reference/batch_norm.hpp"
#include "reference/convolution.hpp"
#include "reference/embedding.hpp"
#include "reference/flatten.hpp"
#include "reference/layer_norm.hpp"
#include "reference/linear.hpp"
#include "reference/loss.hpp"
#include "reference/max_pool.hpp"
#include "reference/rearrange.hpp"
#include "reference/rms_norm.hpp"
#include "reference/rotary.hpp"
#include "reference/softmax.hpp"
#include "table.hpp"

namespace fusionllm::inline v0 {

/// T is float or double.
template <class T>
struct reference {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "reference computes in float or double");
  using real = T;
  static constexpr std::string_view name = std::is_same_v<T, float> ? "reference" : "reference_f64";
  static constexpr bool host = true;

  struct context : device_context {
    /// The number of threads is what other devices take; these loops use one.
    explicit context(int = 1) {}
  };

  template <class Op>
  static constexpr const kernel_table* kernels() {
    return &kernel_table_of<Op, reference>;
  }
};

/// Operators that the library has plain loops for; the others bring their own (`Op::kernel`).
template <class Op, class T>
  requires has_plain_kernel<Op, T>
struct kernel<Op, reference<T>> : plain_kernel<Op, T> {
};

}  // namespace fusionllm::inline v0
