// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/plan.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fusionllm_test::error_of;

TEST_CASE("micro-batches fall into consecutive groups, groups to replicas in order") {
  const fl::plan p = plan_of({0, 0, 0, 0}, {{4, 7}}, 10, 4);
  std::vector<int> groups, peers;
  for (int m = 0; m < 10; ++m) {
    groups.push_back(p.group_of(m));
    peers.push_back(p.peer_of(0, m));
  }
  CHECK(groups == std::vector<int>{0, 0, 0, 1, 1, 2, 2, 2, 3, 3});
  CHECK(peers == std::vector<int>{4, 4, 4, 4, 4, 7, 7, 7, 7, 7});
  CHECK(p.stage_of_peer(7) == 0);
  CHECK(p.stage_of_peer(0) == -1);
}

TEST_CASE("a plan that fits passes, each that does not says why") {
  const fl::graph_view g = fl::graph_of<linears<3>>();  // nodes 0 to 5, of which 0 and 1 are inputs
  const fl::plan good = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1, 2}}, 4, 2);
  fl::check(good, g, 3);
  const auto refused = [&](auto change, int peers = 3) {
    fl::plan p = good;
    change(p);
    return error_of([&] { fl::check(p, g, peers); });
  };
  CHECK(refused([](fl::plan& p) { p.stage_of.pop_back(); }).says(fl::errc::plan, "5 nodes", "6"));
  CHECK(refused([](fl::plan& p) { p.peers.clear(); }).says(fl::errc::plan, "no stage"));
  CHECK(refused([](fl::plan& p) { p.stage_of[3] = 2; }).says(fl::errc::plan, "node 3", "stage 2"));
  CHECK(refused([](fl::plan& p) { p.stage_of[3] = -1; }).says(fl::errc::plan, "node 3"));
  CHECK(refused([](fl::plan& p) { p.micro_batches = 0; }).says(fl::errc::plan, "micro_batches is 0"));
  CHECK(refused([](fl::plan& p) { p.groups = 0; }).says(fl::errc::plan, "groups is 0"));
  CHECK(refused([](fl::plan& p) { p.groups = 5; }).says(fl::errc::plan, "groups is 5"));
  CHECK(refused([](fl::plan& p) { p.groups = 3; }).says(fl::errc::plan, "2 replicas"));
  CHECK(refused([](fl::plan& p) { p.peers[0].clear(); }).says(fl::errc::plan, "stage 0 has no peer"));
  CHECK(refused([](fl::plan& p) { p.peers[1] = {1, 0}; }).says(fl::errc::plan, "peer 0 runs stages 0 and 1"));
  CHECK(refused([](fl::plan&) {}, 2).says(fl::errc::plan, "peer 2", "0 to 1"));
  CHECK(refused([](fl::plan& p) { p.stage_of = {0, 1, 0, 0, 0, 0}; }).says(fl::errc::plan, "stage 1 has no node"));
}
