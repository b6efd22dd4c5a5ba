// SPDX-License-Identifier: Apache-2.0
// Reports of peers that are steps apart become whole steps, in order; links are what one step added.
#include <fusionllm/cluster/step_reports.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

fl::step_reports reports_of(fl::flags works, u64 first = 0) {
  const auto g = fl::graph_of<case_gpt>();
  fl::plan p = chain_plan(g.size(), {{0}, {1}});
  p.predicted_step = 77;
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < works.size(); ++i) titles.push_back("'p" + std::to_string(i) + "'");
  fl::step_reports r;
  r.begin(g, p, std::move(works), std::move(titles), first);
  return r;
}
fl::report report_of(u64 step, fl::i64 elapsed, u64 bytes = 0) {
  fl::report r;
  r.step = step;
  r.loss = double(step) + 0.5;
  r.elapsed = elapsed;
  if (bytes) r.traffic = {{1, step + 1, bytes, bytes / 2, bytes / 2 + 80, 5 * fl::i64(step + 1)}};
  return r;
}

}  // namespace

TEST_CASE("a step is complete when all who work have reported it; the fast ones may be ahead") {
  auto r = reports_of({1, 0, 1});
  CHECK(r.slowest(9) == 0);
  r.add(0, report_of(0, 10), 4);
  r.add(0, report_of(1, 20), 4);
  CHECK(!r.take());
  CHECK(r.done(0) == 2);
  CHECK(r.slowest(9) == 0);
  r.add(2, report_of(0, 30), 4);
  const auto first = r.take();
  REQUIRE(first);
  CHECK(first->step == 1);
  CHECK(first->loss == 0.5);
  CHECK(first->elapsed == 30);
  CHECK(first->predicted == 77);
  CHECK(!r.take());
  CHECK(r.slowest(9) == 1);
  r.add(2, report_of(1, 5), 4);
  const auto second = r.take();
  REQUIRE(second);
  CHECK(second->step == 2);
  CHECK(second->elapsed == 20);
  CHECK(!r.take());
}

TEST_CASE("what a link carried in a step is the difference of what it carried since the run began") {
  auto r = reports_of({1, 1});
  for (u64 step = 0; step < 2; ++step) {
    r.add(1, report_of(step, 1), 2);
    r.add(0, report_of(step, 1, step ? 300 : 100), 2);
    const auto s = r.take();
    REQUIRE(s);
    REQUIRE(s->links.size() == 1);
    const auto& l = s->links[0];
    CHECK(l.from == 0);
    CHECK(l.to == 1);
    CHECK(l.messages == 1);
    CHECK(l.raw == (step ? 200 : 100));
    CHECK(l.encoded == l.raw / 2);
    CHECK(l.busy == 5);
  }
}

TEST_CASE("reports out of order, not granted or of links to nobody are refused by name; a resumed run begins later") {
  auto r = reports_of({1, 1}, 6);
  CHECK(r.slowest(9) == 6);
  CHECK(error_of([&] { r.add(0, report_of(5, 1), 9); }).says(fl::errc::protocol, "'p0'", "step 5", "expected 6 of 9"));
  CHECK(error_of([&] { r.add(0, report_of(7, 1), 9); }).says(fl::errc::protocol, "step 7"));
  CHECK(error_of([&] { r.add(1, report_of(6, 1), 6); }).says(fl::errc::protocol, "'p1'", "6 granted"));
  auto far = report_of(6, 1, 10);
  far.traffic[0].to = 2;
  CHECK(error_of([&] { r.add(0, far, 9); }).says(fl::errc::protocol, "peer 2 of 2"));
  CHECK(!r.take());
  r.add(0, report_of(6, 1), 9);
  CHECK(r.done(0) == 7);
  CHECK(reports_of({0, 0}).slowest(9) == 9);
  CHECK(!r.works(2));
}

TEST_CASE("the verdict of a step goes through a report as it was, and numbers that are none become faults") {
  fl::step_report s;
  s.step = 3;
  s.verdict = {1.5, 2.5, 0.25, true, fl::skip_reason::not_finite, 0.5, {fl::fault_kind::cotangent, 2, 17, fl::fault::no, 1}};
  s.learning_rate = 0.125;
  auto m = fl::to_message(s);
  CHECK(m.step == 3);
  CHECK(m.learning_rate == 0.125);
  const auto v = fl::verdict_of(m);
  CHECK(v.loss == 1.5);
  CHECK(v.skipped);
  CHECK(v.reason == fl::skip_reason::not_finite);
  CHECK(v.mean_loss == 0.5);
  CHECK(v.first == s.verdict.first);
  m.skipped = 77;
  m.kind = 99;
  CHECK(fl::verdict_of(m).reason == fl::skip_reason::not_finite);
  CHECK(fl::verdict_of(m).first.kind == fl::fault_kind::activation);
}
