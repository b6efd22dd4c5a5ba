// SPDX-License-Identifier: Apache-2.0
// The operator of a model's inputs: it computes nothing, its value is given.
#pragma once

#include "operator.hpp"

namespace fusionllm::inline v0 {

struct placeholder_op : operator_base {
  static constexpr std::string_view name = "input";
  static constexpr bool placeholder = true;
  static constexpr unsigned differentiable = 0;
  static constexpr u64 flops(const op_view&) { return 0; }
  static constexpr u64 flops_backward_input(const op_view&) { return 0; }
};

}  // namespace fusionllm::inline v0
