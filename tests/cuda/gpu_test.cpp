// SPDX-License-Identifier: Apache-2.0
// On a GPU: every operator that has a kernel, forward and backward, against plain loops in double, and every fused chain.
// Without one these tests say so.
#include <fusionllm/device/cuda.hpp>

#include <fusionllm/device/reference.hpp>

#include "gpu_memory.hpp"
#include "model.hpp"
#include "operator_run.hpp"
#include "text_model.hpp"

namespace fl = fusionllm;

namespace {

template <class Model>
void check_model(const std::vector<fl::sizes>& all, double bound) {
  constexpr auto g = fl::graph_of<Model>();
  const auto& side = fl::device_tables<Model, fl::cuda>();
  fl::cuda_context& gpu = seam::gpu_of(side);
  const auto exact = fl::device_table<Model, fl::reference<double>>();
  for (int node = 0; node < g.size(); ++node) {
    if (g.nodes[std::size_t(node)].op->placeholder) continue;
    REQUIRE(side.tables[std::size_t(node)]);
    for (const fl::sizes& s : all)
      for (const auto mode : {fl::pass::training, fl::pass::inference})
        for (const bool over : {false, true}) {
          INFO("node " << node << " (" << g.nodes[std::size_t(node)].op->name << "), batch " << s.batch << ", time " << s.time
                       << (over ? ", over its input" : ""));
          const seam::operator_case c{g, node, s, mode, over};
          fl::device_context none;
          seam::guarded_memory<double> plain;
          seam::gpu_memory<> memory(gpu);
          const auto expected = seam::operator_run(c, plain)(*exact[std::size_t(node)], none);
          const auto found = seam::operator_run(c, memory)(*side.tables[std::size_t(node)], gpu);
          seam::check_results(found, expected, bound);
        }
  }
}

}  // namespace

TEST_CASE("GPU: linear, element-wise operators and fused chains", "[gpu][small]") {
  check_model<seam::model>({{1, 1}, {37, 1}, {3000, 1}}, 2e-6);
}

TEST_CASE("GPU: operators of language models", "[gpu][small]") {
  check_model<seam::text_model>({{1, 1}, {2, 5}, {3, 33}, {2, 200}}, 2e-6);
  check_model<seam::llama_like>({{1, 1}, {2, 5}, {3, 33}, {1, 130}}, 2e-6);
  check_model<seam::wide_heads>({{1, 1}, {1, 17}, {2, 70}}, 2e-6);
}
