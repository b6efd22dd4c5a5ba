// SPDX-License-Identifier: Apache-2.0
// A consumer of fusionllm::cpu through fusionllm_add_trainer, without a CUDA compiler: its .cu file does not exist.
#include <cstdio>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

static_assert(FUSIONLLM_WITH_CUDA == 0);

struct regression {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1>(g, "y");
    auto z = fl::output("z", x | fl::linear<8> | fl::relu | fl::linear<1>);
    return fl::mean_squared_error(z, y);
  }
};

int main() {
  const auto kernels = fl::device_table<regression, fl::cpu>();
  std::printf("%zu nodes on the CPU\n", kernels.size());
  return kernels.empty() ? 1 : 0;
}
