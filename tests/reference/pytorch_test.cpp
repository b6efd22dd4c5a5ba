// SPDX-License-Identifier: Apache-2.0
// reference<double> gives PyTorch's fp64 numbers; reference<float> and fl::cpu are about as exact as PyTorch's fp32.
#include <fusionllm/device/cpu.hpp>

#include "distance_check.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

template <class Model>
void check_numbers() {
  using device = fl::reference<double>;
  device::context c;
  const fl::graph_view g = fl::graph_of<Model>();
  graph_runner<device> run(g, fl::device_table<Model, device>(), Model::size::run, c);
  const auto stored = read_case(Model::name);
  int inputs = 0, results = 0;
  for (const auto& t : stored) {
    if (t.kind == "parameter") {
      const int p = fl::find_parameter(g, t.name);
      REQUIRE(p >= 0);
      REQUIRE(run.parameter(p).size() == t.values.size());
      run.parameter(p) = t.values;
    } else if (t.kind == "input" || t.kind == "integers") {
      const int i = fl::find_input(g, t.name);
      REQUIRE(i >= 0);
      if (t.kind == "input")
        run.value(i) = t.values;
      else
        for (std::size_t k = 0; k < t.values.size(); ++k) run.integers(i)[k] = std::int32_t(t.values[k]);
      ++inputs;
    }
  }
  CHECK(inputs == 2);
  const double loss = run.forward();
  run.backward();
  for (const auto& t : stored) {
    INFO(Model::name << ' ' << t.kind << ' ' << t.name);
    const int node = fl::find_output(g, t.name);
    if (t.kind == "output" && t.name == "loss")
      CHECK(std::abs(loss - t.values[0]) < 1e-13 * std::abs(loss));
    else if (t.kind == "output")
      CHECK(distance(run.value(node), t.values) < 1e-13);
    else if (t.kind == "cotangent")
      CHECK(distance(run.cotangent(node), t.values) < 1e-12);
    else if (t.kind == "gradient")
      CHECK(distance(run.gradient(fl::find_parameter(g, t.name)), t.values) < 1e-12);
    else
      continue;
    ++results;
  }
  CHECK(results == 4 + run.parameter_count());
}

}  // namespace

TEST_CASE("reference<double> gives PyTorch's numbers") {
  for_each_model<small_size>([]<class Model>() { check_numbers<Model>(); });
}

// Plain loops sum one after another, PyTorch in blocks: a few times the rounding is in order.
TEST_CASE("reference<float> is at most 6 times as far from fp64 as PyTorch's fp32") {
  fl::reference<float>::context c;
  for_each_model<large_size>([&]<class Model>() { check_distances<Model, fl::reference<float>>(c, 6); });
}

TEST_CASE("fl::cpu is at most 3 times as far from fp64 as PyTorch's fp32") {
  for (const int threads : {1, 2}) {
    fl::cpu::context c(threads);
    for_each_model<large_size>([&]<class Model>() { check_distances<Model, fl::cpu>(c, 3); });
  }
}

TEST_CASE("the distances' gate refuses a result that is four times as far off") {
  // PyTorch's own distance for x is 2.71e-8: one fp32 addition.
  CHECK(pytorch_distance("gelu", "output", "x") < 3e-8);
  CHECK(distance(std::vector<double>{1 + 4 * 2.8e-8}, std::vector<double>{1})
        > 3 * pytorch_distance("gelu", "output", "x"));
}
