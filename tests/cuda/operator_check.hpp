// SPDX-License-Identifier: Apache-2.0
// Every operator of a model whose kernels are our own, on the host's teams, against plain loops in double.
#pragma once

#include <fusionllm/device/reference.hpp>

#include "operator_run.hpp"
#include "team_device.hpp"

namespace seam {

/// How far a norm of differences may be from 0; 0: the bits are those of plain loops in float.
template <class T>
double bound_of(std::string_view op) {
  if (sizeof(T) < sizeof(float)) return 3e-3;  // half the last place of bf16, as a norm of many
  for (std::string_view exact : {"embedding", "positions", "transpose", "slice", "concatenate", "reshape", "flatten",
                                 "max_pool", "average_pool"})
    if (op == exact) return 0;
  return 1e-6;
}

template <class Model, class Device>
void check_operators(fl::sizes sizes, std::string_view only = "") {
  constexpr auto g = fl::graph_of<Model>();
  const auto exact = fl::device_table<Model, fl::reference<double>>();
  const auto same = fl::device_table<Model, fl::reference<float>>();
  const auto table = fl::device_table<Model, Device>();
  for (int node = 0; node < g.size(); ++node) {
    const std::string_view name = g.nodes[std::size_t(node)].op->name;
    if (!only.empty() && name != only) continue;
    if (g.nodes[std::size_t(node)].op->placeholder || name == "linear") continue;  // linear: host_team_test.cpp
    REQUIRE(table[std::size_t(node)]);
    for (const auto mode : {fl::pass::training, fl::pass::inference})
      for (const bool over : {false, true}) {
        INFO("node " << node << " (" << name << "), batch " << sizes.batch << ", time " << sizes.time << ", "
                     << (mode == fl::pass::training ? "training" : "inference") << (over ? " over its input" : ""));
        using T = typename Device::real;
        const operator_case c{g, node, sizes, mode, over, sizeof(T) < sizeof(float)};
        const double bound = bound_of<T>(name);
        typename Device::context context;
        guarded_memory<T> memory;
        guarded_memory<float> float_memory;
        guarded_memory<double> double_memory;
        const auto found = operator_run(c, memory)(*table[std::size_t(node)], context);
        CHECK(memory.intact());
        if (bound == 0)
          check_results(found, operator_run(c, float_memory)(*same[std::size_t(node)], context), 0);
        else
          check_results(found, operator_run(c, double_memory)(*exact[std::size_t(node)], context), bound);
      }
  }
}

}  // namespace seam
