// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/parameter_store.hpp>

#include <cstdint>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("a peer has the parameters of its stage, optimizer state of what it owns, a gradient for each use and group") {
  const auto g = fl::graph_of<case_gpt>();
  const fl::plan p = chain_plan(g.size(), {{0, 1}, {2}}, 4, 4);
  const auto owners = fl::owners_of(g, p);
  for (int peer = 0; peer < 3; ++peer) {
    fl::parameter_store s(g, p, peer, fl::dtype::f32, 1);
    const std::size_t groups = peer == 2 ? 4 : 2;
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      const auto& h = owners[i].holders;
      fl::local_parameter* x = s.find(int(i));
      REQUIRE((x != nullptr) == (std::find(h.begin(), h.end(), peer) != h.end()));
      if (!x) continue;
      CHECK(x->primary == (owners[i].primary == peer));
      CHECK((x->m != nullptr) == x->primary);
      CHECK((x->v != nullptr) == x->primary);
      std::vector<float> expected(g.params[i].count());
      fl::initialize(expected.data(), g.params[i], 1);
      CHECK(std::memcmp(x->weight, expected.data(), expected.size() * 4) == 0);
    }
    std::vector<std::pair<const std::byte*, u64>> memory;
    for (const auto& x : s.parameters())
      for (const std::byte* at : {x.weight, x.m, x.v})
        if (at) memory.push_back({at, g.params[std::size_t(x.parameter)].count() * 4});
    for (auto& u : s.uses()) {
      CHECK(u.groups.size() == groups);
      CHECK(s.find_use(u.where) == &u);
      CHECK(owners[std::size_t(u.parameter)].uses[std::size_t(u.index)] == u.where);
      for (const std::byte* at : u.groups) memory.push_back({at, g.params[std::size_t(u.parameter)].count() * 4});
    }
    u64 total = 0;
    std::sort(memory.begin(), memory.end());
    for (std::size_t i = 0; i < memory.size(); ++i) {
      total += fl::aligned(memory[i].second);
      CHECK(reinterpret_cast<std::uintptr_t>(memory[i].first) % 64 == 0);
      if (i > 0) CHECK(memory[i - 1].first + memory[i - 1].second <= memory[i].first);
    }
    CHECK(total == s.bytes());
  }
  fl::parameter_store first(g, p, 0, fl::dtype::f64, 1);
  CHECK(first.find_use({g.size() - 1, 0}) == nullptr);
  CHECK(first.uses().size() > 3);
}
