// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/peer_order.hpp>

#include <set>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

namespace {

// How often an order goes from one residue class (site) to another.
int crossings(const fl::peer_order& o, int sites) {
  int n = 0;
  for (std::size_t i = 0; i + 1 < o.size(); ++i) n += o[i] % sites != o[i + 1] % sites;
  return n;
}
bool is_permutation_of_all(const fl::peer_order& o, int n) {
  return std::set<int>(o.begin(), o.end()).size() == std::size_t(n) && int(o.size()) == n;
}

}  // namespace

TEST_CASE("few peers: every order; many: each group is crossed to once") {
  const fl::cost_model few = flat_costs(4, 10, {1, 1});
  const auto small = problem_of<linears<3>>(few);
  const fl::step_profile fs(small);
  fl::chain cs(fs);
  CHECK(fl::candidate_orders(cs).size() == 24);

  constexpr int peers = 12, sites = 3;
  fl::cost_model many = flat_costs(peers, 10, {100, 1'000'000'000});
  for (int a = 0; a < peers; ++a)
    for (int b = 0; b < peers; ++b)
      if (a % sites != b % sites) many.set_path(a, b, {10'000, 1'000'000});
  const auto problem = problem_of<linears<16>>(many, 8);
  const fl::step_profile f(problem);
  fl::chain c(f);
  const auto orders = fl::candidate_orders(c);
  REQUIRE(orders.size() >= 2);
  for (const auto& o : orders) {
    CHECK(is_permutation_of_all(o, peers));
    CHECK(crossings(o, sites) == sites - 1);
  }
  CHECK(std::set<fl::peer_order>(orders.begin(), orders.end()).size() == orders.size());
}

TEST_CASE("the slowest link between sites is the one that is not used") {
  constexpr int peers = 6, sites = 3;
  const auto slowest = [](int a, int b) { return a % sites != 1 && b % sites != 1 && a % sites != b % sites; };
  fl::cost_model costs = flat_costs(peers, 10, {100, 1'000'000'000});
  for (int a = 0; a < peers; ++a)
    for (int b = 0; b < peers; ++b)
      if (a % sites != b % sites) costs.set_path(a, b, {1'000, slowest(a, b) ? 1'000u : 1'000'000u});
  const auto problem = problem_of<linears<16>>(costs, 8);
  const fl::step_profile f(problem);
  fl::chain c(f);
  for (const auto& o : fl::candidate_orders(c))
    for (std::size_t i = 0; i + 1 < o.size(); ++i) CHECK_FALSE(slowest(o[i], o[i + 1]));
}
