// SPDX-License-Identifier: Apache-2.0
// Operators on images and small residual networks against PyTorch: reference<double> gives its fp64 numbers, running
// statistics after two micro-batches included; fl::cpu is about as exact as its fp32.
#include "images.hpp"

#include <algorithm>
#include <map>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/device/reference.hpp>
#include <fusionllm/schedule/schedulers.hpp>
#include <fusionllm/trainer/basic_trainer.hpp>

#include "graph_runner.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using results = std::map<std::pair<std::string, std::string>, std::vector<double>>;
template <class V>
std::vector<double> in_double(const V& v) {
  return {v.begin(), v.end()};
}

/// All that the script has of an operator, by (kind, name).
template <class Model, class Device>
results run_operator(typename Device::context& c, u32 seed) {
  using T = typename Device::real;
  const fl::graph_view g = fl::graph_of<Model>();
  graph_runner<Device> run(g, fl::device_table<Model, Device>(), {Model::size::batch, 1}, c);
  for (int p = 0; p < run.parameter_count(); ++p)
    for (std::size_t i = 0; i < run.parameter(p).size(); ++i)
      run.parameter(p)[i] = T(started(g.params[std::size_t(p)], i, seed));
  for (const char* name : {"images", "target"}) {
    auto& v = run.value(fl::find_input(g, name));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = T(2 * drawn(name, i, seed));
  }
  results r;
  r[{"output", "loss"}] = {run.forward()};
  run.backward();
  for (const char* name : {"x", "y"}) r[{"output", name}] = in_double(run.value(fl::find_output(g, name)));
  r[{"cotangent", "x"}] = in_double(run.cotangent(fl::find_output(g, "x")));
  for (int p = 0; p < run.parameter_count(); ++p) {
    const auto& info = g.params[std::size_t(p)];
    auto v = in_double(run.gradient(p));
    for (std::size_t i = 0; i < v.size() && !info.trained(); ++i) v[i] += 0.9 * double(run.parameter(p)[i]);
    r[{info.trained() ? "gradient" : "statistic", std::string(info.path.view())}] = v;
  }
  return r;
}

/// One step of a network on two micro-batches of three images.
template <class Model, class Device>
results run_network(u32 seed, int threads) {
  using T = typename Device::real;
  const fl::model_binding& binding =
      fl::bind_model<Model, fl::devices<Device>, fl::schedulers<fl::best_single>, fl::built_in_compressors>();
  fl::trainer_options o;
  o.threads = threads;
  o.batch = 6;
  o.time = 1;
  o.micro_batches = 2;
  o.groups = 2;
  fl::basic_trainer t(binding, o);
  const auto whole = [](const fl::tensor_ref& x) {
    return std::vector<double>(x.as<const T>(), x.as<const T>() + x.count());
  };
  for (const auto& p : t.graph().params)
    for (std::size_t i = 0; i < std::size_t(p.count()); ++i)
      t.parameter(p.path.view()).template as<T>()[i] = T(started(p, i, seed));
  const i64 side = Model::config.side;
  std::vector<T> images(std::size_t(6 * 3 * side * side));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = T(2 * drawn("images", i, seed));
  const std::vector<std::int32_t> targets{0, 7, 4, 1, 8, 5};
  results r;
  const auto step = t.step({{"images", std::span(images), {6, 3, side, side}}, {"labels", std::span(targets), {6}}});
  r[{"output", "loss"}] = {step.loss};
  for (const auto& p : t.graph().params) {
    const std::string name(p.path.view());
    r[{p.trained() ? "gradient" : "statistic", name}] = whole(p.trained() ? t.gradient(name) : t.parameter(name));
  }
  return r;
}

void check_numbers(const char* name, const results& found, double limit) {
  std::size_t checked = 0;
  for (const auto& e : image_results(name)) {
    INFO(name << ' ' << e.kind << ' ' << e.tensor);
    const auto it = found.find({e.kind, e.tensor});
    REQUIRE(it != found.end());
    CHECK(distance(sampled(it->second), e.values) < limit);
    ++checked;
  }
  CHECK(checked == found.size());
}

/// How many times as far from fp64 as PyTorch's fp32 each result is: medians over five seeds, as the script's are.
/// found(seed) and exact(seed) give results.
template <class Found, class Exact>
std::map<results::key_type, double> ratios(const char* name, Found&& found, Exact&& exact) {
  std::map<results::key_type, std::vector<double>> distances;
  for (u32 seed = 1; seed <= 5; ++seed) {
    const results a = found(seed), b = exact(seed);
    for (const auto& [key, value] : a) distances[key].push_back(distance(value, b.at(key)));
  }
  std::map<results::key_type, double> r;
  for (auto& [key, d] : distances) {
    if (key.second == "loss") continue;
    std::sort(d.begin(), d.end());
    r[key] = d[2] / image_distance(name, key.first, key.second);
  }
  return r;
}
template <class Found, class Exact>
void check_distances(const char* name, Found&& found, Exact&& exact, double times) {
  for (const auto& [key, ratio] : ratios(name, found, exact)) {
    INFO(name << ' ' << key.first << ' ' << key.second);
    CHECK(ratio <= times);
  }
}

}  // namespace

TEST_CASE("operators on images: reference<double> gives PyTorch's numbers") {
  fl::reference<double>::context c;
  for_each_image_model<small_images>(
      [&]<class Model>() { check_numbers(Model::name, run_operator<Model, fl::reference<double>>(c, 1), 1e-12); });
}

TEST_CASE("operators on images: fl::cpu is at most 3 times as far from fp64 as PyTorch's fp32") {
  fl::reference<double>::context exact;
  for_each_image_model<large_images>([&]<class Model>() {
    fl::cpu::context c(2);
    check_distances(Model::name, [&](u32 seed) { return run_operator<Model, fl::cpu>(c, seed); },
                    [&](u32 seed) { return run_operator<Model, fl::reference<double>>(exact, seed); }, 3);
  });
}

TEST_CASE("residual networks: loss, every gradient and running statistics of a step are PyTorch's") {
  check_numbers("basic_blocks", run_network<basic_blocks, fl::reference<double>>(1, 1), 1e-11);
  check_numbers("bottlenecks", run_network<bottlenecks, fl::reference<double>>(1, 1), 1e-11);
  check_numbers("as_deep_as_101", run_network<as_deep_as_101, fl::reference<double>>(1, 1), 1e-9);
}

TEST_CASE("residual networks: fl::cpu is at most 3 times as far from fp64 as PyTorch's fp32") {
  check_distances("basic_blocks", [](u32 seed) { return run_network<basic_blocks, fl::cpu>(seed, 2); },
                  [](u32 seed) { return run_network<basic_blocks, fl::reference<double>>(seed, 1); }, 3);
  check_distances("bottlenecks", [](u32 seed) { return run_network<bottlenecks, fl::cpu>(seed, 2); },
                  [](u32 seed) { return run_network<bottlenecks, fl::reference<double>>(seed, 1); }, 3);
}

// So deep and narrow a network's last bits decide which units are off: single tensors differ by a few per cent, in
// PyTorch as here, and only all of them together tell something.
TEST_CASE("a network as deep as ResNet-101: fl::cpu is about as far from fp64 as PyTorch's fp32") {
  const auto all = ratios(
      "as_deep_as_101", [](u32 seed) { return run_network<as_deep_as_101, fl::cpu>(seed, 2); },
      [](u32 seed) { return run_network<as_deep_as_101, fl::reference<double>>(seed, 1); });
  double product = 0;
  for (const auto& [key, ratio] : all) product += std::log(ratio);
  CHECK(all.size() == 314 + 208);
  CHECK(std::exp(product / double(all.size())) <= 1.5);
}
