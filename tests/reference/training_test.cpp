// SPDX-License-Identifier: Apache-2.0
// Five steps of AdamW on a GPT-2 over two peers against PyTorch's, as make_models.py wrote them: losses and weights.
#include <fusionllm/device/cpu.hpp>
#include <fusionllm/models/gpt2.hpp>

#include "drawn.hpp"
#include "engines.hpp"
#include "graph_runner.hpp"
#include "numbers.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

struct trained_gpt2 : fl::gpt<fl::gpt_config{.layers = 1, .width = 16, .heads = 2, .vocabulary = 61, .positions = 16}> {};

template <class Device>
void compare(double limit) {
  using T = typename Device::real;
  const fl::graph_view g = fl::graph_of<trained_gpt2>();
  group_options options;
  options.bounds = {2, 9};
  options.optimizer.learning_rate = 1e-2;
  options.optimizer.clip_norm = 0.5;
  options.optimizer.adamw = {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  engine_group<trained_gpt2, Device> group(chain_plan(g.size(), {{0}, {1}}, 3, 1), options);
  for (int i = 0; i < group.size(); ++i)
    for (const auto& x : group.engine(i).parameters().parameters()) {
      const std::vector<double> w = drawn(g, x.parameter);
      for (std::size_t k = 0; k < w.size(); ++k) reinterpret_cast<T*>(x.weight)[k] = T(w[k]);
    }
  std::vector<double> losses;
  for (u32 step = 0; step < 5; ++step) {
    token_batch batch(6, 9);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      batch.tokens[i] = std::int32_t(mixed(200 + step, i) % 61);
      batch.targets[i] = i % 7 ? std::int32_t(mixed(300 + step, i) % 61) : token_batch::ignored;
    }
    losses.push_back(group.step(batch.data(step, g)).verdict.loss);
  }
  auto found = group.weights();
  int weights = 0;
  for (const auto& t : read_case("trained")) {
    INFO(t.kind << ' ' << t.name);
    if (t.name == "losses") {
      CHECK(distance(losses, t.values) < limit);
      continue;
    }
    const auto& bytes = found[t.name];
    std::vector<T> w(bytes.size() / sizeof(T));
    std::memcpy(w.data(), bytes.data(), bytes.size());
    CHECK(distance(without_keys(t.name, {w.begin(), w.end()}), without_keys(t.name, t.values)) < limit);
    ++weights;
  }
  CHECK(weights == int(g.params.size()));
}

}  // namespace

TEST_CASE("reference<double> trains as PyTorch does") { compare<fl::reference<double>>(1e-6); }
TEST_CASE("fl::cpu trains as PyTorch does in fp64, to fp32") { compare<fl::cpu>(1e-4); }
