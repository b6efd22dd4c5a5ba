// SPDX-License-Identifier: Apache-2.0
// The device `fl::cpu`. Its kernels are specializations of `kernel` in this folder; element-wise operators and chains
// without one run in the loops of device/chain.hpp, the operators' own plain loops do the rest.
#pragma once

#include "../reference/plain_kernel.hpp"
#include "../table.hpp"
#include "arithmetic.hpp"
#include "context.hpp"

namespace fusionllm::inline v0 {

struct cpu {
  using real = float;
  using context = cpu_context;
  static constexpr std::string_view name = "cpu";
  static constexpr bool host = true;
  /// What its bits depend on on this machine: peers that agree on it agree on bits.
  static std::string arithmetic() { return detail::cpu_arithmetic(); }

  template <class Op>
  static constexpr const kernel_table* kernels() {
    return &kernel_table_of<Op, cpu>;
  }
};

}  // namespace fusionllm::inline v0
