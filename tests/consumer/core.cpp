// SPDX-License-Identifier: Apache-2.0
// A consumer of fusionllm::core: a model is declared and has kernels of the reference device, with nothing but the
// standard library and threads.
#include <cstdio>

#include <fusionllm/core/version.hpp>
#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct regression {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1>(g, "y");
    auto z = fl::output("z", x | fl::linear<8> | fl::relu | fl::linear<1>);
    return fl::mean_squared_error(z, y);
  }
};

int main() {
  constexpr auto g = fl::graph_of<regression>();
  const auto kernels = fl::device_table<regression, fl::reference<float>>();
  std::printf("fusionllm %d.%d.%d: %d nodes\n", fl::version_major, fl::version_minor, fl::version_patch, g.size());
  return int(kernels.size()) == g.size() && g.size() > 5 ? 0 : 1;
}
