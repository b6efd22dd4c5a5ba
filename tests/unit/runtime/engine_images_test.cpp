// SPDX-License-Identifier: Apache-2.0
// A residual network on engines: the same bits for every plan, running statistics included, which are what PyTorch's
// rule makes of the micro-batches in ascending order.
#include <fusionllm/runtime/engine.hpp>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/models/resnet.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

struct small_resnet
    : fl::residual_network<fl::resnet_config{
          .blocks = {1, 2, 1, 1}, .classes = 5, .stem = fl::resnet_stem::cifar, .side = 16, .channels = 2, .width = 4}> {
  static constexpr int vocabulary = 5;
};
struct bottlenecks
    : fl::residual_network<fl::resnet_config{
          .blocks = {1, 1, 1, 1}, .bottleneck = true, .classes = 5, .side = 64, .channels = 2, .width = 4}> {
  static constexpr int vocabulary = 5;
};

struct deep : fl::residual_network<fl::resnet_config{.blocks = {3, 4, 23, 3},
                                                      .bottleneck = true,
                                                      .classes = 5,
                                                      .stem = fl::resnet_stem::cifar,
                                                      .side = 16,
                                                      .channels = 2,
                                                      .width = 2}> {
  static constexpr int vocabulary = 5;
};

template <class T>
struct image_batch {
  i64 rows;
  std::vector<T> images;
  std::vector<std::int32_t> targets;
  fl::step_data data;

  image_batch(const fl::graph_view& g, i64 r) : rows(r), targets(std::size_t(r)) {
    images.resize(std::size_t(g.nodes[0].out.resolve({r, 1}).count()));
    data.rows = r;
    data.inputs.assign(g.nodes.size(), nullptr);
    data.inputs[std::size_t(fl::find_input(g, "images"))] = images.data();
    data.inputs[std::size_t(fl::find_input(g, "labels"))] = targets.data();
  }
  const fl::step_data& at(u64 step) {
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = T(fl::uniform(fl::random_word({3, step, 0, 0}, i))) + T(0.1) * T(i % 7);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = std::int32_t(fl::random_word({4, step, 0, 0}, i) % 5);
    data.step = step;
    return data;
  }
};

struct outcome {
  std::vector<double> losses;
  named_bits weights, state;
  bool operator==(const outcome&) const = default;
};

template <class Model, class Device>
outcome train(fl::plan p, int steps, i64 rows = 10, u64 delays = 1, int threads = 1) {
  p.micro_batches = 4;
  p.groups = 2;
  group_options o;
  o.bounds = {3, 1};
  o.optimizer = lively_optimizer();
  o.delays = delays;
  o.threads = threads;
  engine_group<Model, Device> g(p, o);
  image_batch<typename Device::real> b(g.graph(), rows);
  outcome r;
  for (int s = 0; s < steps; ++s) {
    r.losses.push_back(g.step(b.at(u64(s))).verdict.loss);
    r.weights = g.weights();  // throws where copies differ
  }
  r.state = g.optimizer_state();
  return r;
}

/// Nodes up to `last` on stage 0, the others on stage 1.
fl::plan cut_after(int nodes, int last, std::vector<std::vector<int>> peers = {{0}, {1}}) {
  fl::plan p = chain_plan(nodes, std::move(peers));
  for (int i = 0; i < nodes; ++i) p.stage_of[std::size_t(i)] = i > last;
  return p;
}

/// Any node on any of the stages.
fl::plan scattered(int nodes, int stages, u64 seed) {
  std::vector<std::vector<int>> peers;
  for (int i = 0; i < stages; ++i) peers.push_back({i});
  if (seed % 2) peers[std::size_t(seed) % std::size_t(stages)].push_back(stages);
  fl::plan p = chain_plan(nodes, std::move(peers));
  for (int i = 0; i < nodes; ++i)
    p.stage_of[std::size_t(i)] = i < stages ? i : int(fl::random_word({seed, 9, 0, 0}, u64(i)) % u32(stages));
  p.schedule = seed % 3 ? fl::schedule_kind::one_f_one_b : fl::schedule_kind::gpipe;
  return p;
}

}  // namespace

TEST_CASE("a residual network cut after any node gives the same bits") {
  using device = fl::reference<float>;
  const int n = fl::graph_of<small_resnet>().size();
  const outcome one = train<small_resnet, device>(chain_plan(n, {{0}}), 2);
  REQUIRE(one.losses[0] != one.losses[1]);
  for (int last = 2; last + 1 < n; ++last) {  // the first two nodes are inputs
    INFO("cut after node " << last);
    fl::plan p = cut_after(n, last);
    p.schedule = last % 2 ? fl::schedule_kind::one_f_one_b : fl::schedule_kind::gpipe;
    CHECK(train<small_resnet, device>(p, 2) == one);
  }
}

TEST_CASE("a residual network on replicas and on scattered stages gives the same bits") {
  using device = fl::reference<float>;
  const int n = fl::graph_of<small_resnet>().size();
  const outcome one = train<small_resnet, device>(chain_plan(n, {{0}}), 3);
  CHECK(train<small_resnet, device>(chain_plan(n, {{0, 1}}), 3) == one);
  CHECK(train<small_resnet, device>(chain_plan(n, {{1, 0}, {2}}), 3, 10, 2) == one);
  CHECK(train<small_resnet, device>(chain_plan(n, {{2}, {1, 0}}), 3, 10, 3) == one);
  for (u64 seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed);
    CHECK(train<small_resnet, device>(scattered(n, 2 + int(seed % 3), seed), 3, 10, seed) == one);
  }
}

TEST_CASE("recomputation changes no bit of a residual network, its running statistics included") {
  using device = fl::reference<float>;
  const int n = fl::graph_of<small_resnet>().size();
  const outcome one = train<small_resnet, device>(chain_plan(n, {{0}}), 3);
  for (auto policy : {fl::recompute_policy::block, fl::recompute_policy::selective})
    for (fl::plan p : {chain_plan(n, {{0}}), chain_plan(n, {{0}, {1}, {2}}), scattered(n, 3, 1), scattered(n, 2, 4)}) {
      INFO(fl::name_of(policy) << ", " << p.stages() << " stages");
      p.recompute = policy;
      CHECK(train<small_resnet, device>(p, 3) == one);
    }
}

TEST_CASE("fewer samples than micro-batches: statistics count those that have some") {
  using device = fl::reference<float>;
  const int n = fl::graph_of<small_resnet>().size();
  const outcome one = train<small_resnet, device>(chain_plan(n, {{0}}), 2, 3);
  CHECK(train<small_resnet, device>(chain_plan(n, {{0, 1}}), 2, 3) == one);
  CHECK(train<small_resnet, device>(cut_after(n, n / 2), 2, 3) == one);
}

TEST_CASE("fl::cpu: a network of bottlenecks gives the same bits on every plan and number of threads") {
  const int n = fl::graph_of<bottlenecks>().size();
  const outcome one = train<bottlenecks, fl::cpu>(chain_plan(n, {{0}}), 3);
  CHECK(train<bottlenecks, fl::cpu>(chain_plan(n, {{0, 1}}), 3, 10, 1, 2) == one);
  CHECK(train<bottlenecks, fl::cpu>(chain_plan(n, {{0}, {1}, {2}}), 3) == one);
  CHECK(train<bottlenecks, fl::cpu>(chain_plan(n, {{0}, {2, 1}}), 3, 10, 2) == one);
  for (u64 seed = 0; seed < 6; ++seed) CHECK(train<bottlenecks, fl::cpu>(scattered(n, 3, seed), 3, 10, seed, 3) == one);
}

TEST_CASE("fl::cpu: as deep as ResNet-101, cut after any node") {
  const int n = fl::graph_of<deep>().size();
  const outcome one = train<deep, fl::cpu>(chain_plan(n, {{0}}), 1, 4);
  for (int last = 2; last + 1 < n; ++last) {
    INFO("cut after node " << last);
    CHECK(train<deep, fl::cpu>(cut_after(n, last), 1, 4, u64(last)) == one);
  }
}

TEST_CASE("running statistics are PyTorch's rule applied micro-batch after micro-batch") {
  using device = fl::reference<double>;
  const fl::graph_view g = fl::graph_of<small_resnet>();
  for (i64 rows : {10, 3}) {
    fl::plan p = chain_plan(g.size(), {{0}});
    p.micro_batches = 4;
    group_options o;
    o.bounds = {3, 1};
    engine_group<small_resnet, device> group(p, o);
    // The first norm: what goes in, a micro-batch after the other.
    int norm = 0;
    while (g.nodes[std::size_t(norm)].op->name != "batch_norm") ++norm;
    const int before = g.nodes[std::size_t(norm)].in[0];
    std::vector<double> mean(4, 0.0), variance(4, 1.0);
    int seen = 0;
    group.engine(0).compute().observe([&](int node, int m, bool backward, const fl::tensor_ref& x) {
      if (node != before || backward) return;
      CHECK(m == seen++ % 4);
      const i64 pixels = 256, images = x.count() / (4 * pixels), n = images * pixels;
      for (i64 c = 0; c < 4; ++c) {
        double sum = 0, squares = 0;
        auto each = [&](auto f) {
          for (i64 i = 0; i < images; ++i)
            for (i64 k = 0; k < pixels; ++k) f(x.as<const double>()[(i * 4 + c) * pixels + k]);
        };
        each([&](double v) { sum += v; });
        each([&](double v) { squares += (v - sum / double(n)) * (v - sum / double(n)); });
        mean[std::size_t(c)] = 0.9 * mean[std::size_t(c)] + 0.1 * (sum / double(n));
        variance[std::size_t(c)] = 0.9 * variance[std::size_t(c)] + 0.1 * (squares / double(n - 1));
      }
    });
    image_batch<double> b(g, rows);
    for (u64 s = 0; s < 3; ++s) {
      if (rows == 3) seen = 0;  // the fourth micro-batch is empty
      group.step(b.at(s));
    }
    const auto close = [&](const char* name, const std::vector<double>& expected) {
      const auto* found = reinterpret_cast<const double*>(
          group.engine(0).parameters().find(fl::find_parameter(g, name))->weight);
      for (std::size_t c = 0; c < 4; ++c) CHECK(std::abs(found[c] - expected[c]) < 1e-14);
    };
    close("bn1.running_mean", mean);
    close("bn1.running_var", variance);
  }
}

TEST_CASE("a steady step of a residual network on the CPU allocates nothing") {
  const fl::graph_view g = fl::graph_of<bottlenecks>();
  group_options o;
  o.bounds = {3, 1};
  o.same_delays = true;
  o.threads = 2;
  engine_group<bottlenecks, fl::cpu> group(chain_plan(g.size(), {{0}, {1}}), o);
  image_batch<float> b(g, 10);
  for (u64 step = 0; step < 6; ++step) {
    b.at(step);
    const long before = allocations();
    group.step(b.data);
    INFO("step " << step);
    if (step >= 3) CHECK(allocations() == before);
  }
}
