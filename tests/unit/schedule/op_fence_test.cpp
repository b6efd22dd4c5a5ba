// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/op_fence.hpp>

#include "catch.hpp"
#include "fusionllm/schedule/equal.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fusionllm_test::error_of;

namespace {

constexpr fl::path quick{1'000, 10'000'000'000}, slow{20 * fl::millisecond, 1'000'000};

bool same(const fl::plan& a, const fl::plan& b) {
  return a.stage_of == b.stage_of && a.peers == b.peers && a.predicted_step == b.predicted_step && a.notes == b.notes;
}
fl::plan planned(const fl::planning_problem& problem) {
  const fl::plan p = fl::op_fence{}(problem);
  fl::check(p, problem.graph, problem.peers());
  CHECK(p.predicted_step == fl::predict_step(problem, p));
  CHECK(same(p, fl::op_fence{}(problem)));
  return p;
}
bool notes_say(const fl::plan& p, const std::string& text) {
  for (const auto& n : p.notes)
    if (n.find(text) != std::string::npos) return true;
  return false;
}
int crossings_between_sites(const fl::planning_problem& problem, const fl::plan& p) {
  int n = 0;
  for (const fl::edge& e : fl::compile(problem.graph, p).edges)
    n += !problem.costs->machines().same_site(p.peer_of(e.from, 0), p.peer_of(e.to, 0));
  return n;
}

// Sites of `each` peers, interleaved in the numbering, quick inside, slow between.
fl::cost_model interleaved_sites(int sites, int each, fl::nanoseconds per_operator) {
  fl::cluster c = fl::uniform_cluster(sites * each, {"", 0, 1'000'000'000, plenty, 0, 0}, slow);
  for (int s = 1; s < sites; ++s) c.sites.push_back({"site" + std::to_string(s), 0, 0});
  for (int a = 0; a < c.size(); ++a) {
    c.peers[std::size_t(a)].site = a % sites;
    for (int b = 0; b < c.size(); ++b)
      if (a % sites == b % sites) c.between(a, b) = quick;
  }
  fl::cost_model costs(c);
  for (int a = 0; a < costs.peers(); ++a) set_speed(costs, a, per_operator);
  return costs;
}

}  // namespace

TEST_CASE("slow links are crossed once, there and back") {
  // Work is so heavy that both sites are worth it.
  const fl::cost_model costs = interleaved_sites(2, 3, 50 * fl::millisecond);
  const auto problem = problem_of<linears<23>>(costs, 16, {4, 1});
  const fl::plan p = planned(problem);
  CHECK(fl::peers_used(p) == 6);
  CHECK(crossings_between_sites(problem, p) == 2);
  CHECK(fl::equal_number{}(problem).predicted_step > p.predicted_step);
}

TEST_CASE("with many peers too, and the slow sites are left out when they are not worth it") {
  const fl::cost_model heavy = interleaved_sites(3, 4, 100 * fl::millisecond), light = interleaved_sites(3, 4, 20'000);
  const auto problem = problem_of<linears<47>>(heavy, 16, {4, 1});
  const fl::plan p = planned(problem);
  CHECK(fl::peers_used(p) == 12);
  CHECK(crossings_between_sites(problem, p) == 4);
  const auto small = problem_of<linears<47>>(light, 16, {4, 1});
  const fl::plan q = planned(small);
  CHECK(crossings_between_sites(small, q) == 0);
  CHECK(fl::peers_used(q) == 4);
  CHECK(notes_say(q, "4 of 12 peers"));
}

TEST_CASE("a device alone that is faster is taken, and said; who wants more peers gets them, with the truth") {
  fl::cost_model costs = flat_costs(3, fl::millisecond, slow);
  set_speed(costs, 1, fl::millisecond / 2);
  auto problem = problem_of<linears<5>>(costs, 4);
  fl::plan p = planned(problem);
  CHECK(p.peers == std::vector<std::vector<int>>{{1}});
  CHECK(notes_say(p, "alone is fastest"));
  for (int least = 2; least <= 3; ++least) {
    problem.least_peers = least;
    p = planned(problem);
    CHECK(fl::peers_used(p) >= least);
    CHECK(notes_say(p, "that device alone would be faster"));
  }
}

TEST_CASE("both ends of a tied model meet on one peer where the parameter is dear and the links are slow") {
  const fl::cost_model costs = flat_costs(2, 40 * fl::millisecond, {fl::millisecond, 1'000'000});
  const auto problem = problem_of<gpt<2, 16, 20000>>(costs, 8, {1, 2});
  const fl::plan p = planned(problem);
  REQUIRE(p.stages() == 2);
  CHECK(p.stage_of[2] == p.stage_of[std::size_t(problem.graph.size()) - 2]);
  CHECK(fl::owners_of(problem.graph, p)[0].holders.size() == 1);
}

TEST_CASE("codecs are inside the cost: with compression the slow link is worth it") {
  const fl::cost_model costs = flat_costs(2, 2 * fl::millisecond, {0, 1'000});
  auto problem = problem_of<linears<15>>(costs, 16, {2, 1});
  CHECK(fl::peers_used(planned(problem)) == 1);
  problem.codec = "any";
  problem.ratio = 8;
  const fl::plan p = planned(problem);
  CHECK(fl::peers_used(p) == 2);
  CHECK(p.codecs.size() == 2);
}

TEST_CASE("replicas, where micro-batches are many and links quick") {
  const fl::cost_model costs = flat_costs(8, fl::millisecond, quick);
  auto problem = problem_of<linears<3>>(costs, 8);
  problem.groups = 2;
  const fl::nanoseconds without = planned(problem).predicted_step;
  problem.replicas = true;
  const fl::plan p = planned(problem);
  CHECK(p.predicted_step < without);
  CHECK(p.peers.front().size() == 2);
}

TEST_CASE("C26: one operator on three devices") {
  const fl::cost_model costs = flat_costs(3, 10, quick);
  auto problem = problem_of<one_operator>(costs, 2);
  const fl::plan p = planned(problem);
  CHECK(p.stages() == 1);
  problem.least_peers = 2;
  CHECK(error_of([&] { fl::op_fence{}(problem); }).says(fl::errc::plan, "2 or more peers"));
}

TEST_CASE("C26: 42 layers on 16 devices") {
  const fl::cost_model costs = flat_costs(16, fl::millisecond, quick);
  auto problem = problem_of<linears<42>>(costs, 64);
  const fl::plan p = planned(problem);
  std::vector<int> count(p.peers.size());
  for (int i = 2; i < problem.graph.size(); ++i) ++count[std::size_t(p.stage_of[std::size_t(i)])];
  CHECK(*std::max_element(count.begin(), count.end()) <= 3);
  problem.least_peers = 16;
  CHECK(fl::peers_used(planned(problem)) == 16);
}

TEST_CASE("C26: a link without bandwidth is not used, whichever it is") {
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      fl::cost_model costs = flat_costs(4, fl::millisecond, quick);
      costs.set_path(a, b, {});
      const auto problem = problem_of<linears<11>>(costs, 16);
      const fl::plan p = planned(problem);
      CHECK(fl::peers_used(p) >= 3);
    }
  const fl::cost_model apart = flat_costs(7, fl::millisecond, {});
  auto problem = problem_of<linears<11>>(apart, 16);
  const fl::plan p = planned(problem);
  CHECK(fl::peers_used(p) == 1);
  CHECK(notes_say(p, "no plan over several peers"));
  problem.least_peers = 2;
  CHECK(error_of([&] { fl::op_fence{}(problem); }).code == fl::errc::plan);
}

TEST_CASE("C26: a disconnected graph has every operator placed, on any machines") {
  const fl::cost_model costs = flat_costs(3, fl::millisecond, quick);
  auto problem = problem_of<two_islands>(costs, 8);
  planned(problem);
  for (int least = 2; least <= 3; ++least) {
    problem.least_peers = least;
    CHECK(fl::peers_used(planned(problem)) >= least);
  }
}

TEST_CASE("C26: equal costs give one plan, always the same") {
  for (int peers : {2, 5, 6, 9}) {
    const fl::cost_model costs = flat_costs(peers, fl::millisecond, quick);
    planned(problem_of<linears<17>>(costs, 16));
  }
}

TEST_CASE("C26: too little memory is a reason with numbers; enough together is a plan") {
  // Five linears of 72 parameters: 1152 bytes each with their optimizer.
  const auto problem_with = [](const fl::cost_model& costs) { return problem_of<linears<5>>(costs, 2); };
  const fl::cost_model none = flat_costs(3, 10, quick, 1'000), some = flat_costs(3, 10, quick, 3'000);
  const auto hopeless = problem_with(none);
  CHECK(error_of([&] { fl::op_fence{}(hopeless); }).says(fl::errc::plan, "need 5760 bytes", "together have 3000 bytes", "add memory"));
  const auto tight = problem_with(some);
  const fl::plan p = planned(tight);
  CHECK(fl::peers_used(p) == 3);
  CHECK(notes_say(p, "no single device"));
  const fl::cost_model lumpy = flat_costs(8, 10, quick, 1'100);
  const auto stuck = problem_with(lumpy);
  CHECK(error_of([&] { fl::op_fence{}(stuck); }).says(fl::errc::plan, "no plan can run", "it has 1100 bytes"));
}

TEST_CASE("C26: a speed of zero is refused before planning, one that is next to nothing is planned around") {
  fl::cluster c = flat_costs(3, 10, quick).machines();
  c.peers[1].flops_per_second = 0;
  CHECK(error_of([&] { fl::cost_model m(c); }).says(fl::errc::topology, "speed of 0"));
  c.peers[1].flops_per_second = 1;
  const fl::cost_model costs(c);
  const auto problem = problem_of<linears<11>>(costs, 4, {64, 1});
  for (const auto& team : planned(problem).peers) CHECK(team != std::vector<int>{1});
}

TEST_CASE("one peer, one micro-batch, GPipe") {
  const fl::cost_model one = flat_costs(1, 10, quick), two = flat_costs(2, fl::millisecond, quick);
  CHECK(planned(problem_of<linears<3>>(one)).notes.empty());
  auto problem = problem_of<linears<7>>(two, 6);
  problem.schedule = fl::schedule_kind::gpipe;
  CHECK(planned(problem).schedule == fl::schedule_kind::gpipe);
}
