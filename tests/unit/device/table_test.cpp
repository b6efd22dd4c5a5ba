// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/table.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

template <class Model, class Device>
void check_table() {
  const fl::graph_view g = fl::graph_of<Model>();
  const auto table = fl::device_table<Model, Device>();
  REQUIRE(int(table.size()) == g.size());
  for (int i = 0; i < g.size(); ++i) {
    const fl::node& n = g.nodes[std::size_t(i)];
    const fl::kernel_table* t = table[std::size_t(i)];
    if (n.op->placeholder) {
      CHECK(t == nullptr);
      continue;
    }
    REQUIRE(t);
    CHECK(t->forward);
    CHECK(t->workspace_bytes);
    CHECK((t->backward_input || n.op->name == "embedding"));
    CHECK((t->backward_weight != nullptr) == (n.param_count() > 0));
  }
}

}  // namespace

TEST_CASE("every node but the inputs has its kernels") {
  check_table<tiny_gpt, fl::reference<float>>();
  check_table<tiny_gpt, fl::reference<double>>();
  check_table<gpt2<12, 768, 12>, fl::reference<float>>();
  check_table<chained<false>, fl::reference<float>>();
  check_table<chained<true>, fl::reference<float>>();
}

TEST_CASE("operators of one kind share their table, and so do chains of one kind") {
  const fl::graph_view g = fl::graph_of<tiny_gpt>();
  const auto table = fl::device_table<tiny_gpt, fl::reference<float>>();
  const fl::kernel_table* linear = nullptr;
  int chains = 0;
  for (int i = 0; i < g.size(); ++i) {
    const fl::node& n = g.nodes[std::size_t(i)];
    if (n.op->name == "linear") {
      if (linear) CHECK(table[std::size_t(i)] == linear);
      linear = table[std::size_t(i)];
    }
    for (int j = 0; j < i; ++j) {
      const fl::node& m = g.nodes[std::size_t(j)];
      if (n.links == 0 || m.links == 0) continue;
      bool same = n.links == m.links;
      for (int k = 0; same && k < n.links; ++k) same = n.chain[std::size_t(k)].op == m.chain[std::size_t(k)].op;
      CHECK(same == (table[std::size_t(i)] == table[std::size_t(j)]));
    }
    chains += n.links > 0;
  }
  CHECK(chains == 6);  // dropout + add after attention; gelu + dropout; dropout + add: twice
}
