// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/step_replay.hpp>

#include "catch.hpp"
#include "planning_models.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::message_kind;
using fl::nanoseconds;

namespace {

struct notebook {
  std::vector<fl::message_record> messages;
  std::vector<fl::compute_record> computes;
  void operator()(const fl::message_record& m) { messages.push_back(m); }
  void operator()(const fl::compute_record& c) { computes.push_back(c); }

  // "start-end" of a peer's tasks.
  std::string of_peer(int peer) const {
    std::string s;
    for (const auto& c : computes)
      if (c.peer == peer) s += (s.empty() ? "" : " ") + std::to_string(c.start) + "-" + std::to_string(c.end);
    return s;
  }
  std::string of_link(int from, int to) const {
    std::string s;
    for (const auto& m : messages)
      if (m.from == from && m.to == to)
        s += (s.empty() ? "" : " ") + std::string(fl::name_of(m.kind)) + ":" + std::to_string(m.start) + "-" + std::to_string(m.sent) +
             ">" + std::to_string(m.arrived);
    return s;
  }
};

nanoseconds replay(const fl::planning_problem& problem, const fl::plan& p, notebook& n) {
  const fl::step_profile f(problem);
  const fl::program r = fl::compile(problem.graph, p);
  fl::step_replay<notebook> events(f, p, r, n);
  const nanoseconds end = events.run();
  CHECK(events.finished());
  return end;
}

// One byte a nanosecond, 100 ns late; a tensor of the linears is 32 bytes.
constexpr fl::path line{100, 1'000'000'000};

}  // namespace

TEST_CASE("one micro-batch over two peers, by hand") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  notebook n;
  const nanoseconds step = replay(problem_of<linears<3>>(costs), plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}), n);
  CHECK(n.of_peer(0) == "0-20 324-344 632-637");
  CHECK(n.of_peer(1) == "152-172 172-192 500-505");
  // A summary says two counts and 12 bytes for each of 4 owned parameters: 56.
  CHECK(n.of_link(0, 1) == "activation:20-52>152 summary:344-400>500");
  CHECK(n.of_link(1, 0) == "cotangent:192-224>324 answer:500-532>632");
  CHECK(step == 637);
}

TEST_CASE("two micro-batches: messages queue, 1F1B goes back first, by hand") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  notebook n;
  replay(problem_of<linears<3>>(costs, 2), plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 2), n);
  CHECK(n.of_peer(1).substr(0, 31) == "152-172 172-192 192-212 212-232");
  CHECK(n.of_peer(0).substr(0, 28) == "0-20 20-40 324-344 364-384 6");
  CHECK(n.of_link(0, 1).substr(0, 47) == "activation:20-52>152 activation:52-84>184 summa");
}

TEST_CASE("GPipe goes forward first, but does not wait while it could go back") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 10'000'000'000}), slow = flat_costs(2, 10, line);
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 2);
  notebook one, two, three;
  replay(problem_of<linears<3>>(costs, 2), p, one);
  p.schedule = fl::schedule_kind::gpipe;
  replay(problem_of<linears<3>>(costs, 2), p, two);
  replay(problem_of<linears<3>>(slow, 2), p, three);
  CHECK(one.of_link(1, 0).substr(0, 21) == "cotangent:164-168>268");
  CHECK(two.of_link(1, 0).substr(0, 21) == "cotangent:184-188>288");
  CHECK(three.of_peer(1).substr(0, 31) == "152-172 172-192 192-212 212-232");
}

TEST_CASE("replicas pass gradients on in order, the last one to the owner, who sends the new values") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  auto problem = problem_of<linears<1>>(costs, 2);
  problem.groups = 2;
  notebook n;
  const nanoseconds step = replay(problem, plan_of({0, 0, 0, 0}, {{0, 1}}, 2, 2), n);
  // Both compute 0-40. Weight 256 and bias 32 bytes: to replica 1, back to the owner, summary, answer, update, values.
  CHECK(n.of_link(0, 1) ==
        "gradient:40-296>396 gradient:296-328>428 answer:784-816>916 value:816-1072>1172 value:1072-1104>1204");
  CHECK(n.of_link(1, 0) == "summary:40-60>160 gradient:396-652>752 gradient:652-684>784");
  CHECK(step == 1204);
}

TEST_CASE("the use of a tied parameter on another peer costs its gradient and its new values") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  const auto problem = problem_of<gpt<1, 16>>(costs, 1, {1, 4});
  std::vector<int> apart, together;
  for (int i = 0; i < problem.graph.size(); ++i) {
    const bool middle = i > 10 && i + 3 < problem.graph.size(), end = i + 3 >= problem.graph.size();
    together.push_back(middle);
    apart.push_back(middle || end);
  }
  notebook one, two;
  replay(problem, plan_of(together, {{0}, {1}}), one);
  replay(problem, plan_of(apart, {{0}, {1}}), two);
  const auto count = [](const notebook& n, message_kind k) {
    return std::count_if(n.messages.begin(), n.messages.end(), [&](const auto& m) { return m.kind == k; });
  };
  CHECK(count(one, message_kind::gradient) == 0);
  CHECK(count(two, message_kind::gradient) == 1);
  CHECK(count(two, message_kind::value) == 1);
  for (const auto& m : two.messages)
    if (m.kind == message_kind::value) CHECK(m.bytes == 256 * 16 * 4);
}

TEST_CASE("peers of a site share its line") {
  // Peers 0 and 1 at one site send to 2 and 3 at another; each link 1 byte a ns, the site's line as much for both.
  const auto costs_with = [](fl::u64 up) {
    fl::cluster c = fl::uniform_cluster(4, {"", 0, 1'000'000'000, plenty, 0, 0}, {0, 1'000'000'000});
    c.sites = {{"a", up, 0}, {"b", 0, 0}};
    c.peers[2].site = c.peers[3].site = 1;
    fl::cost_model costs(c);
    for (int i = 0; i < 4; ++i) {
      fl::device_rates r;
      r.other.launch = 10;
      costs.set_rates(i, r);
    }
    costs.set_message_overhead(0);
    return costs;
  };
  const fl::plan p = plan_of({0, 1, 0, 1, 1}, {{0, 1}, {2, 3}}, 2, 2);
  for (const bool shared : {false, true}) {
    const fl::cost_model costs = costs_with(shared ? 1'000'000'000 : 0);
    auto problem = problem_of<linears<2>>(costs, 2);
    problem.groups = 2;
    notebook n;
    replay(problem, p, n);
    CHECK(n.of_link(0, 2).substr(0, 19) == "activation:10-42>42");
    CHECK(n.of_link(1, 3).substr(0, 19) == (shared ? "activation:42-74>74" : "activation:10-42>42"));
  }
}

TEST_CASE("codecs shorten messages and cost their coding") {
  fl::cost_model costs = flat_costs(2, 10, line);
  for (int i = 0; i < 2; ++i) {
    fl::device_rates r = costs.rates(i);
    r.attoseconds_per_coded_byte = fl::attoseconds_per_nanosecond / 4;
    costs.set_rates(i, r);
  }
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}});
  p.codecs = {{0, 1, "any", 4}};
  notebook n;
  replay(problem_of<linears<3>>(costs), p, n);
  CHECK(n.of_link(0, 1).substr(0, 20) == "activation:28-36>136");  // 8 ns to encode, 8 bytes
  CHECK(n.of_peer(1).substr(0, 7) == "144-164");                   // 8 ns to decode
  CHECK(n.of_link(1, 0).substr(0, 21) == "cotangent:184-216>316");
  CHECK(n.messages[0].raw_bytes == 32);
}
