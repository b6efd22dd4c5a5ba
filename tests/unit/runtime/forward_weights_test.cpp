// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/forward_weights.hpp>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("weights of some nodes: each once, none of others") {
  const auto g = fl::graph_of<case_gpt>();
  fl::flags some(g.nodes.size(), 0);
  fl::u64 bytes = 0;
  std::vector<fl::u8> wanted(g.params.size(), 0);
  for (std::size_t i = 0; i < g.nodes.size() / 2; ++i) {
    some[i] = 1;
    for (int p : g.nodes[i].params)
      if (p >= 0) wanted[std::size_t(p)] = 1;
  }
  fl::forward_weights w(g, some, fl::dtype::f32);
  for (std::size_t p = 0; p < g.params.size(); ++p) {
    CHECK(w.held(int(p)) == bool(wanted[p]));
    if (!wanted[p]) continue;
    CHECK(w.of(int(p)).size() == g.params[p].count() * 4);
    for (std::byte& b : w.of(int(p))) b = std::byte(p + 1);
    bytes += (g.params[p].count() * 4 + 63) / 64 * 64;
  }
  CHECK(w.bytes() == bytes);
  for (int p : w.all_held())
    for (std::byte b : w.of(p)) REQUIRE(b == std::byte(p + 1));
}
