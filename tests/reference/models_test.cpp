// SPDX-License-Identifier: Apache-2.0
// The models of models/gpt2.hpp and models/llama.hpp against those of transformers: loss, logits and every gradient of a
// first step, as make_models.py wrote them.
#include <fusionllm/models/gpt2.hpp>
#include <fusionllm/models/llama.hpp>

#include <algorithm>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/device/reference.hpp>

#include "drawn.hpp"
#include "graph_runner.hpp"
#include "numbers.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

struct small_gpt2 : fl::gpt<fl::gpt_config{.layers = 2, .width = 32, .heads = 4, .vocabulary = 61, .positions = 16}> {
  static constexpr const char* name = "gpt2";
};
struct small_llama
    : fl::llama<fl::llama_config{.layers = 2, .width = 16, .heads = 4, .kv_heads = 2, .hidden = 40, .vocabulary = 61}> {
  static constexpr const char* name = "llama";
};
constexpr fl::sizes size{3, 9};

template <class Model, class Device>
graph_runner<Device> first_step(typename Device::context& c) {
  graph_runner<Device> run(fl::graph_of<Model>(), fl::device_table<Model, Device>(), size, c);
  const fl::graph_view& g = run.graph();
  for (int p = 0; p < run.parameter_count(); ++p) {
    const std::vector<double> w = drawn(g, p);
    std::transform(w.begin(), w.end(), run.parameter(p).begin(), [](double x) { return typename Device::real(x); });
  }
  auto& tokens = run.integers(fl::find_input(g, "tokens"));
  auto& targets = run.integers(fl::find_input(g, "targets"));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = std::int32_t(mixed(100, i) % 61);
    targets[i] = std::int32_t(mixed(101, i) % 61);
  }
  targets[9 + 4] = targets[9 + 5] = -100;
  run.forward();
  run.backward();
  return run;
}

template <class Model, class Device>
void compare(typename Device::context& c, double limit) {
  auto run = first_step<Model, Device>(c);
  const fl::graph_view& g = run.graph();
  int gradients = 0;
  for (const auto& t : read_case(Model::name)) {
    INFO(Model::name << ' ' << t.kind << ' ' << t.name);
    if (t.name == "loss")
      CHECK(std::abs(double(run.value(g.loss)[0]) - t.values[0]) < limit * t.values[0]);
    else if (t.name == "logits")
      CHECK(distance(run.value(fl::find_output(g, "logits")), t.values) < limit);
    else {
      const int p = fl::find_parameter(g, t.name);
      REQUIRE(p >= 0);
      const auto& found = run.gradient(p);
      CHECK(distance(without_keys(t.name, {found.begin(), found.end()}), without_keys(t.name, t.values)) < limit);
      ++gradients;
    }
  }
  CHECK(gradients == run.parameter_count());
}

}  // namespace

TEST_CASE("GPT-2 and Llama on reference<double> have transformers' loss, logits and gradients") {
  fl::reference<double>::context c;
  compare<small_gpt2, fl::reference<double>>(c, 1e-6);  // what is stored has seven digits
  compare<small_llama, fl::reference<double>>(c, 1e-6);
}

TEST_CASE("GPT-2 and Llama on fl::cpu have transformers' loss, logits and gradients, to fp32") {
  fl::cpu::context c(2);
  compare<small_gpt2, fl::cpu>(c, 1e-5);
  compare<small_llama, fl::cpu>(c, 1e-5);
}
