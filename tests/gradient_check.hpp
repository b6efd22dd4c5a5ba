// SPDX-License-Identifier: Apache-2.0
// Gradients against central differences: of every parameter, and of every value inside the graph.
#pragma once

#include <string>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"

namespace fusionllm_test {

/// Element-wise derivative of `loss()` by `x`, fourth order. `x` is restored.
template <class F>
std::vector<double> differences(std::vector<double>& x, double step, F&& loss) {
  std::vector<double> d(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    auto at = [&](double offset) {
      x[i] = before + offset;
      return loss();
    };
    d[i] = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
    x[i] = before;
  }
  return d;
}

/// Checks all gradients of Model in double. Every relative distance must be under `limit`.
template <class Model>
void check_gradients(fl::sizes s, int vocabulary = 1, u64 seed = 1, double limit = 1e-6, double step = 1e-4) {
  using device = fl::reference<double>;
  device::context c;
  graph_runner<device> run(fl::graph_of<Model>(), fl::device_table<Model, device>(), s, c);
  run.randomize(seed, vocabulary);
  run.forward();
  run.backward();
  const auto& g = run.graph();
  for (int p = 0; p < run.parameter_count(); ++p) {
    if (!g.params[std::size_t(p)].trained()) continue;
    INFO("parameter " << std::string(g.params[std::size_t(p)].path.view()) << ", batch " << s.batch << ", time "
                      << s.time);
    const auto expected = differences(run.parameter(p), step, [&] { return run.forward(); });
    CHECK(distance(run.gradient(p), expected) < limit);
  }
  for (int i = 0; i < g.size(); ++i) {
    if (run.cotangent(i).empty()) continue;
    run.forward();
    INFO("value of node " << i << ", " << std::string(g.nodes[std::size_t(i)].op->name) << ", batch " << s.batch
                          << ", time " << s.time);
    const auto expected = differences(run.value(i), step, [&] { return run.forward(i + 1); });
    CHECK(distance(run.cotangent(i), expected) < limit);
  }
}

}  // namespace fusionllm_test
