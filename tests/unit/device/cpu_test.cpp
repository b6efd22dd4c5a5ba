// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/cpu.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"

namespace fl = fusionllm;
using fl::i64;
using fusionllm_test::distance;
using fusionllm_test::graph_runner;

namespace {

constexpr auto sets() { return std::array{fl::vector_isa::portable, fl::vector_isa::avx2, fl::vector_isa::avx512}; }

// A table of positions in front, so that the input of what is tested has a cotangent.
template <int N, class F>
constexpr auto regression(auto& g, F f) {
  auto x = fl::input<fl::real, fl::batch, fl::time, N>(g, "x");
  auto y = f(x | fl::positions<300>);
  auto target = fl::input<fl::real, fl::batch, fl::time, decltype(y)::shape_type::last>(g, "target");
  return fl::mean_squared_error(y, target);
}
struct linears {
  static constexpr auto define(auto& g) {
    return regression<33>(g, [](auto x) { return x | fl::linear<70> | fl::linear<1>.without_bias() | fl::linear<20>; });
  }
};
struct wide_linear {
  static constexpr auto define(auto& g) {
    return regression<5>(g, [](auto x) { return x | fl::linear<2100> | fl::linear<3>; });
  }
};
struct norms {
  static constexpr auto define(auto& g) {
    return regression<37>(g, [](auto x) { return x + (x | fl::layer_norm) | fl::linear<5> | fl::layer_norm; });
  }
};
struct activations {
  static constexpr auto define(auto& g) {
    return regression<19>(g, [](auto x) { return fl::output("y", x | fl::gelu) + x * (x | fl::relu); });
  }
};
struct chains {
  static constexpr auto define(auto& g) {
    return regression<33>(g, [](auto x) {
      auto y = fl::output("y", ((x | fl::gelu) * x | fl::dropout(0.25)) + x);
      auto z = fl::output("z", y + x | fl::dropout(0.5));
      return (y + z | fl::relu) * (x * z | fl::dropout(0.1) | fl::gelu);
    });
  }
};
template <int Heads, int Features>
struct attentions {
  static constexpr auto define(auto& g) {
    return regression<Features>(g, [](auto x) { return x | fl::causal_attention<Heads>; });
  }
};
struct language_model {
  static constexpr auto block = fl::residual(fl::layer_norm | fl::causal_attention<2> | fl::dropout(0.1)) |
                                fl::residual(fl::layer_norm | fl::linear<80> | fl::gelu | fl::linear<20> | fl::dropout(0.1));
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<51, 20>(g, "wte.weight");
    auto x = fl::embedding(tokens, table) | fl::positions<300> | fl::repeat<2>(block) | fl::layer_norm;
    return fl::cross_entropy(fl::output("logits", fl::project(x, table)), targets, 7);
  }
};

template <class Model, class Device>
graph_runner<Device> run(typename Device::context& c, fl::sizes s, bool reuse = false, fl::pass mode = fl::pass::training) {
  graph_runner<Device> r(fl::graph_of<Model>(), fl::device_table<Model, Device>(), s, c);
  r.reuse_input = reuse;
  r.mode = mode;
  r.randomize(5, 51);
  r.forward();
  if (mode == fl::pass::training) {
    r.backward();
    if (reuse) r.forward();  // the logits are gone
    r.backward();            // gradients are added to
  }
  return r;
}

template <class Model>
void agrees(fl::sizes s, double tolerance = 2e-6) {
  fl::reference<double>::context exact;
  auto expected = run<Model, fl::reference<double>>(exact, s);
  for (auto isa : sets()) {
    if (!fl::has(isa)) continue;
    for (int threads : {1, 2}) {
      fl::cpu::context c(threads, isa);
      auto found = run<Model, fl::cpu>(c, s);
      for (int i = 0; i < found.graph().size(); ++i) {
        INFO("node " << i << " " << found.graph().nodes[std::size_t(i)].op->name << " " << fl::name_of(isa) << ", batch "
                     << s.batch << ", time " << s.time);
        CHECK(distance(found.value(i), expected.value(i)) <= tolerance);
        // The last bits of cotangents that cancel are large beside what is left.
        if (!expected.cotangent(i).empty()) CHECK(distance(found.cotangent(i), expected.cotangent(i)) <= 4 * tolerance);
      }
      for (int p = 0; p < found.parameter_count(); ++p) {
        INFO("parameter " << found.graph().params[std::size_t(p)].path.view() << " " << fl::name_of(isa));
        CHECK(distance(found.gradient(p), expected.gradient(p)) <= 4 * tolerance);
      }
    }
  }
}

template <class Model>
bool same_bits(graph_runner<fl::cpu>& a, graph_runner<fl::cpu>& b) {
  for (int p = 0; p < a.parameter_count(); ++p)
    if (std::memcmp(a.gradient(p).data(), b.gradient(p).data(), a.gradient(p).size() * 4) != 0) return false;
  for (int i = 0; i < a.graph().size(); ++i)
    if (!a.value(i).empty() && std::memcmp(a.value(i).data(), b.value(i).data(), a.value(i).size() * 4) != 0) return false;
  return true;
}

}  // namespace

TEST_CASE("the CPU's kernels agree with plain loops in double, for odd and for unit sizes") {
  for (fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 3}, fl::sizes{1, 70}, fl::sizes{3, 129}}) {
    agrees<linears>(s);
    agrees<activations>(s);
    agrees<chains>(s);
  }
  for (fl::sizes s : {fl::sizes{2, 3}, fl::sizes{3, 129}}) agrees<norms>(s);
}

TEST_CASE("a linear operator agrees where its weight is transposed in panels") { agrees<wide_linear>({4, 130}); }

TEST_CASE("attention agrees for widths and times around its blocks") {
  for (i64 time : {1, 2, 15, 63, 64, 65, 128, 131}) {
    agrees<attentions<1, 1>>({1, time});
    agrees<attentions<3, 21>>({2, time});
  }
  agrees<attentions<4, 64>>({2, 257});
}

TEST_CASE("a language model agrees, ignored targets and a tied table included") {
  agrees<language_model>({3, 5}, 4e-6);
  agrees<language_model>({2, 130}, 4e-6);
}

TEST_CASE("results have the same bits for every number of threads") {
  for (auto isa : sets()) {
    if (!fl::has(isa)) continue;
    fl::cpu::context one(1, isa);
    auto expected = run<language_model, fl::cpu>(one, {5, 130});
    for (int threads : {2, 3, 5}) {
      fl::cpu::context c(threads, isa);
      auto found = run<language_model, fl::cpu>(c, {5, 130});
      INFO(fl::name_of(isa) << ", " << threads << " threads");
      CHECK(same_bits<language_model>(found, expected));
    }
  }
}

TEST_CASE("what a context computed before does not change bits") {
  fl::cpu::context fresh(2), used(2);
  run<attentions<3, 21>, fl::cpu>(used, {2, 131});
  run<language_model, fl::cpu>(used, {5, 130});
  auto expected = run<language_model, fl::cpu>(fresh, {2, 40});
  auto found = run<language_model, fl::cpu>(used, {2, 40});
  CHECK(same_bits<language_model>(found, expected));
}

TEST_CASE("the cotangent of the logits may lie over them") {
  fl::cpu::context c(2);
  auto apart = run<language_model, fl::cpu>(c, {2, 9}, false);
  auto over = run<language_model, fl::cpu>(c, {2, 9}, true);
  for (int p = 0; p < apart.parameter_count(); ++p)
    CHECK(std::memcmp(apart.gradient(p).data(), over.gradient(p).data(), apart.gradient(p).size() * 4) == 0);
}

TEST_CASE("inference needs nothing saved and drops nothing") {
  fl::cpu::context c(2);
  fl::reference<double>::context exact;
  auto found = run<language_model, fl::cpu>(c, {2, 70}, false, fl::pass::inference);
  auto expected = run<language_model, fl::reference<double>>(exact, {2, 70}, false, fl::pass::inference);
  const int logits = fl::find_output(found.graph(), "logits");
  CHECK(distance(found.value(logits), expected.value(logits)) < 4e-6);
}

TEST_CASE("a token's logits do not depend on what comes after it") {
  fl::cpu::context c(2);
  auto whole = run<language_model, fl::cpu>(c, {1, 70}, false, fl::pass::inference);
  graph_runner<fl::cpu> changed(fl::graph_of<language_model>(), fl::device_table<language_model, fl::cpu>(), {1, 70}, c);
  changed.mode = fl::pass::inference;
  changed.randomize(5, 51);
  const int tokens = fl::find_input(changed.graph(), "tokens");
  for (std::size_t t = 33; t < 70; ++t) changed.integers(tokens)[t] = 0;
  changed.forward();
  const std::size_t logits = std::size_t(fl::find_output(whole.graph(), "logits"));
  CHECK(std::memcmp(whole.value(int(logits)).data(), changed.value(int(logits)).data(), 33 * 51 * 4) == 0);
  CHECK(std::memcmp(whole.value(int(logits)).data() + 33 * 51, changed.value(int(logits)).data() + 33 * 51, 51 * 4) != 0);
}

TEST_CASE("a context refuses instructions that the machine lacks") {
  for (auto isa : sets())
    if (!fl::has(isa)) CHECK_THROWS_AS(fl::cpu::context(1, isa), fl::error);
  CHECK(fl::has(fl::vector_isa::portable));
}
