// SPDX-License-Identifier: Apache-2.0
// How far a device's results are from reference<double>, against PyTorch's own fp32.
#pragma once

#include <fusionllm/device/reference.hpp>

#include "graph_runner.hpp"
#include "models.hpp"
#include "numbers.hpp"

namespace fusionllm_test {

/// Runs Model on Device and on reference<double> with the same numbers: every output, cotangent and gradient may be at
/// most `times` as far from fp64 as PyTorch's fp32 is.
template <class Model, class Device>
void check_distances(typename Device::context& c, double times) {
  using exact_device = fl::reference<double>;
  exact_device::context exact_context;
  const fl::graph_view g = fl::graph_of<Model>();
  for (u64 seed = 1; seed <= 3; ++seed) {
    graph_runner<exact_device> exact(g, fl::device_table<Model, exact_device>(), Model::size::run, exact_context);
    graph_runner<Device> run(g, fl::device_table<Model, Device>(), Model::size::run, c);
    exact.randomize(seed, int(Model::size::rows));
    run.randomize(seed, int(Model::size::rows));
    exact.forward();
    run.forward();
    auto check = [&](const std::string& kind, const std::string& name, const auto& a, const auto& b) {
      INFO(Model::name << ' ' << kind << ' ' << name << ", seed " << seed);
      CHECK(distance(a, b) <= times * pytorch_distance(Model::name, kind, name));
    };
    for (const char* name : {"x", "y"}) {
      const int i = fl::find_output(g, name);
      check("output", name, run.value(i), exact.value(i));
    }
    exact.backward();
    run.backward();
    const int x = fl::find_output(g, "x");
    check("cotangent", "x", run.cotangent(x), exact.cotangent(x));
    for (int p = 0; p < run.parameter_count(); ++p)
      check("gradient", std::string(g.params[std::size_t(p)].path.view()), run.gradient(p), exact.gradient(p));
  }
}

}  // namespace fusionllm_test
