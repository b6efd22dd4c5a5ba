// SPDX-License-Identifier: Apache-2.0
// A plan for machines known beforehand, made at compile time from a model's own costs.
#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/schedule/partition.hpp>

#include <fusionllm/estimate/path.hpp>

namespace {

namespace fl = fusionllm;
using fl::i64;

struct model {
  static constexpr auto define(auto& g) {
    auto y = fl::input<fl::real, fl::batch, 32>(g, "y");
    return fl::mean_squared_error(
        fl::input<fl::real, fl::batch, 32>(g, "x") | fl::repeat<6>(fl::linear<128> | fl::gelu | fl::linear<32>), y);
  }
};

// Two devices, one twice as fast, 8 Mbit/s apart.
constexpr fl::partition plan_of_model() {
  const fl::graph_view g = fl::graph_of<model>();
  const fl::sizes s{64, 1};
  constexpr fl::path line{fl::millisecond, 1'000'000};
  fl::partition_problem p;
  p.devices = 2;
  p.share = {1, 1};
  p.kind = {0, 1};
  p.room = {1 << 30, 1 << 30};
  p.hop = {0, 0, 0, 0};
  for (i64 speed : {1, 2}) {  // flops per nanosecond
    i64 sum = 0;
    p.load.push_back(0);
    for (int i = 0; i < g.size(); ++i) {
      if (g.nodes[std::size_t(i)].op->placeholder) continue;
      const fl::node_cost c = fl::cost_of(g, i, s);
      p.load.push_back(sum += i64(c.flops_forward + c.flops_backward) / speed);
    }
  }
  p.cuts = int(p.load.size()) / 2;
  p.fixed_bytes.assign(std::size_t(p.cuts), 0);
  p.slot_bytes.assign(std::size_t(p.cuts), 0);
  p.hop_busy.push_back(0);
  p.hop_span.push_back(0);
  for (int i = 0; i < g.size(); ++i) {
    if (g.nodes[std::size_t(i)].op->placeholder) continue;
    p.hop_busy.push_back(line.occupancy(fl::output_bytes(g, i, s)));
    p.hop_span.push_back(2 * line.transfer(fl::output_bytes(g, i, s)));
  }
  return fl::best_partition(p, 64);
}

constexpr fl::partition_problem nothing{};
static_assert(!fl::best_partition(nothing, 1).found);
static_assert(plan_of_model().found);
static_assert(plan_of_model().device.size() == 2);
// The cut is where a narrow tensor crosses: after a linear<32>, two thirds of the work on the faster device.
static_assert((plan_of_model().begin[1] - 0) % 3 == 0);
static_assert(plan_of_model().begin[1] == 6);

}  // namespace
