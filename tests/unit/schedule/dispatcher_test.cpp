// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/dispatcher.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;

namespace {

// "F0 F1 B0 ...": what a peer does when everything it waits for is there at once.
std::string order_of(fl::dispatcher d, const fl::program& r, const fl::plan& p) {
  for (int m = 0; m < p.micro_batches; ++m)
    for (std::size_t e = 0; e < r.edges.size(); ++e) d.arrived(int(e), m);
  std::string s;
  while (const auto t = d.next()) {
    CHECK_FALSE(d.next());  // one at a time
    s += (s.empty() ? "" : " ") + std::string(r.tasks[std::size_t(t->task)].backward ? "B" : "F") + std::to_string(t->micro_batch);
    d.finished(*t);
  }
  CHECK(d.done());
  return s;
}

}  // namespace

TEST_CASE("GPipe does all forward first, 1F1B goes back as soon as it can") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 4);
  const fl::program r = fl::compile(g, p);
  CHECK(order_of(fl::dispatcher(r, p, 1, 0), r, p) == "F0 B0 F1 B1 F2 B2 F3 B3");
  p.schedule = fl::schedule_kind::gpipe;
  CHECK(order_of(fl::dispatcher(r, p, 1, 0), r, p) == "F0 F1 F2 F3 B0 B1 B2 B3");
}

TEST_CASE("slots bound what is in flight") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 8);
  const fl::program r = fl::compile(g, p);
  CHECK(fl::dispatcher(r, p, 0, 0).slots() == 3);
  CHECK(fl::dispatcher(r, p, 1, 0).slots() == 1);
  CHECK(fl::dispatcher(r, p, 0, 0, 2).slots() == 2);
  p.schedule = fl::schedule_kind::gpipe;
  CHECK(fl::dispatcher(r, p, 0, 0).slots() == 8);
  // Without a cotangent the first stage stops when its slots are full.
  fl::dispatcher d(r, p, 0, 0, 2);
  for (int m = 0; m < 2; ++m) {
    const auto t = d.next();
    REQUIRE(t);
    CHECK(t->micro_batch == m);
    d.finished(*t);
  }
  CHECK_FALSE(d.next());
  const auto missing = d.blocked_on_edge();
  REQUIRE(missing);
  CHECK(missing->task == 1);  // the cotangent's edge
  CHECK(missing->micro_batch == 0);
  d.arrived(1, 0);
  REQUIRE(d.next());
}

TEST_CASE("micro-batches do not overtake, whatever arrives first") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  const fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 3);
  const fl::program r = fl::compile(g, p);
  fl::dispatcher d(r, p, 1, 0);
  d.arrived(0, 1);
  CHECK_FALSE(d.next());
  d.arrived(0, 0);
  REQUIRE(d.next());
  d.begin_step();
  CHECK_FALSE(d.next());  // arrivals of the step before are forgotten
}

TEST_CASE("replicas have their groups' micro-batches only") {
  const fl::graph_view g = fl::graph_of<linears<3>>();
  const fl::plan p = plan_of({0, 0, 0, 0, 0, 0}, {{0, 1}}, 6, 2);
  const fl::program r = fl::compile(g, p);
  CHECK(fl::dispatcher(r, p, 0, 0).micro_batches() == std::vector<int>{0, 1, 2});
  CHECK(fl::dispatcher(r, p, 0, 1).micro_batches() == std::vector<int>{3, 4, 5});
  CHECK(order_of(fl::dispatcher(r, p, 0, 1), r, p) == "F3 B3 F4 B4 F5 B5");
}
