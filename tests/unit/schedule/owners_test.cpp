// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/owners.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

TEST_CASE("a tied parameter has a holder at each use, the first use's peer is primary") {
  const fl::graph_view g = fl::graph_of<gpt<1, 16>>();
  fl::plan p;
  for (int i = 0; i < g.size(); ++i) p.stage_of.push_back(i + 2 < g.size() ? 0 : 1);
  p.peers = {{3, 4}, {1}};
  p.micro_batches = p.groups = 2;
  const auto owners = fl::owners_of(g, p);
  REQUIRE(owners.size() == g.params.size());
  CHECK(g.params[0].path.view() == "wte.weight");
  CHECK(owners[0].primary == 3);
  CHECK(owners[0].holders == std::vector<int>{3, 4, 1});
  CHECK(owners[0].uses.size() == 2);
  CHECK(owners[0].stages == std::vector<int>{0, 1});
  CHECK(owners[1].holders == std::vector<int>{3, 4});
  CHECK(fl::leader_of(g, p) == 1);
}
