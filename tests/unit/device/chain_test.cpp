// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/chain.hpp>

#include <map>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

template <class Model, class Device>
graph_runner<Device> runner(fl::sizes s, typename Device::context& c) {
  return {fl::graph_of<Model>(), fl::device_table<Model, Device>(), s, c};
}

// Values, gradients and cotangents of the fused and the unfused model, bit for bit.
template <class T>
void check_fused(fl::sizes s, fl::pass mode, bool partials) {
  using device = fl::reference<T>;
  typename device::context c;
  auto fused = runner<chained<false>, device>(s, c);
  auto apart = runner<chained<true>, device>(s, c);
  for (auto* r : {&fused, &apart}) {
    r->mode = mode;
    r->use_partials = partials;
    r->key = {7, 3, 2, 0};
    r->randomize(5);
  }
  REQUIRE(fused.graph().size() < apart.graph().size());
  CHECK(fused.forward() == apart.forward());
  CHECK(fused.value(fused.graph().size() - 2) == apart.value(apart.graph().size() - 2));
  if (mode == fl::pass::inference) return;
  fused.backward();
  apart.backward();
  for (int p = 0; p < fused.parameter_count(); ++p) CHECK(fused.gradient(p) == apart.gradient(p));
}

template <int P>
struct dropped {
  static constexpr auto define(auto& g) {
    return fl::input<fl::real, fl::batch, fl::time, 50>(g, "x") | fl::positions<64> | fl::dropout(P / 10.0);
  }
};

}  // namespace

TEST_CASE("a fused chain gives the bits of its operators apart") {
  for (const fl::sizes s : {fl::sizes{1, 1}, fl::sizes{2, 9}, fl::sizes{13, 9}})
    for (const fl::pass mode : {fl::pass::training, fl::pass::inference})
      for (const bool partials : {true, false}) {
        check_fused<float>(s, mode, partials);
        check_fused<double>(s, mode, partials);
      }
}

TEST_CASE("dropout keeps a fraction 1 - p, scaled, and inference keeps everything") {
  using device = fl::reference<double>;
  device::context c;
  auto r = runner<dropped<3>, device>({40, 64}, c);
  r.randomize(1);
  r.forward();
  const auto& x = r.value(1);
  const auto& y = r.value(2);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[i] != 0) ++kept;
    CHECK((y[i] == 0 || y[i] == x[i] * (1 / (1 - 0.3))));
  }
  const double n = double(x.size());  // 128,000: five standard deviations are 0.0064
  CHECK(std::abs(double(kept) / n - 0.7) < 5 * std::sqrt(0.3 * 0.7 / n));
  r.mode = fl::pass::inference;
  r.forward();
  CHECK(r.value(2) == r.value(1));
  auto never = runner<dropped<0>, device>({3, 3}, c);
  never.randomize(1);
  never.forward();
  CHECK(never.value(2) == never.value(1));
}

TEST_CASE("dropout's mask is a function of seed, step, micro-batch, node and index alone") {
  using device = fl::reference<float>;
  device::context c;
  auto mask = [&](fl::random_key key, fl::sizes s) {
    auto r = runner<dropped<5>, device>(s, c);
    r.key = key;
    r.randomize(1);
    r.forward();
    std::vector<bool> m;
    for (float y : r.value(2)) m.push_back(y != 0);
    return m;
  };
  const auto base = mask({1, 2, 3, 0}, {4, 8});
  CHECK(mask({1, 2, 3, 0}, {4, 8}) == base);
  CHECK(mask({2, 2, 3, 0}, {4, 8}) != base);
  CHECK(mask({1, 3, 3, 0}, {4, 8}) != base);
  CHECK(mask({1, 2, 4, 0}, {4, 8}) != base);
  const auto shorter = mask({1, 2, 3, 0}, {1, 7});
  CHECK(std::equal(shorter.begin(), shorter.end(), base.begin()));
  const fl::random_key at_node{1, 2, 3, 2};  // the dropout's position in the trace
  for (std::size_t i = 0; i < base.size(); ++i) CHECK(base[i] == (fl::uniform(fl::random_word(at_node, i)) >= 0.5f));
}

TEST_CASE("two dropouts of one model draw different masks") {
  using device = fl::reference<float>;
  device::context c;
  auto r = runner<tiny_gpt, device>({2, 9}, c);
  const fl::graph_view g = r.graph();
  std::map<int, int> nodes;
  for (int i = 0; i < g.size(); ++i)
    for (int k = 0; k < g.nodes[std::size_t(i)].links; ++k) {
      const fl::chain_link& l = g.nodes[std::size_t(i)].chain[std::size_t(k)];
      if (l.op->random) ++nodes[l.traced_id];
    }
  CHECK(nodes.size() == 6);
  for (const auto& [id, n] : nodes) CHECK(n == 1);
}

TEST_CASE("cotangents do not depend on whether kernels add to partial sums") {
  using device = fl::reference<float>;
  device::context c;
  auto a = runner<tiny_gpt, device>({3, 5}, c);
  auto b = runner<tiny_gpt, device>({3, 5}, c);
  b.use_partials = false;
  b.reuse_input = true;
  b.in_place = false;
  for (auto* r : {&a, &b}) {
    r->randomize(1, 11);
    r->forward();
    r->backward();
  }
  for (int p = 0; p < a.parameter_count(); ++p) CHECK(a.gradient(p) == b.gradient(p));
}
