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
  // The first message of a kind on a link.
  std::string first_of_link(int from, int to, const char* kind) const {
    const std::string s = of_link(from, to);
    const std::size_t at = s.find(kind);
    return at == std::string::npos ? "" : s.substr(at, s.find(' ', at) - at);
  }
};

nanoseconds replay(const fl::planning_problem& problem, const fl::plan& p, notebook& n, int steps = 2) {
  const fl::step_profile f(problem);
  const fl::program r = fl::compile(problem.graph, p);
  fl::step_replay<notebook> events(f, p, r, n);
  const nanoseconds end = events.run(steps);
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
  // The leader, peer 1, answers at 0 and updates; peer 0 updates when the answer has come, then both compute.
  CHECK(n.of_peer(0) == "132-137 137-157 461-481");
  CHECK(n.of_peer(1) == "0-5 289-309 309-329");
  // A summary says two counts and 12 bytes for each of 4 owned parameters: 56.
  CHECK(n.of_link(0, 1) == "activation:157-189>289 summary:481-537>637");
  CHECK(n.of_link(1, 0) == "answer:0-32>132 cotangent:329-361>461");
  CHECK(step == 637);
}

TEST_CASE("two micro-batches: messages queue, 1F1B goes back first, by hand") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  notebook n;
  replay(problem_of<linears<3>>(costs, 2), plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 2), n);
  CHECK(n.of_peer(1) == "0-5 289-309 309-329 329-349 349-369");
  CHECK(n.of_peer(0) == "132-137 137-157 157-177 461-481 501-521");
  CHECK(n.of_link(0, 1).substr(0, 51) == "activation:157-189>289 activation:189-221>321 summa");
}

TEST_CASE("GPipe goes forward first, but does not wait while it could go back") {
  const fl::cost_model costs = flat_costs(2, 10, {100, 10'000'000'000}), slow = flat_costs(2, 10, line);
  fl::plan p = plan_of({0, 1, 0, 0, 1, 1}, {{0}, {1}}, 2);
  notebook one, two, three;
  replay(problem_of<linears<3>>(costs, 2), p, one);
  p.schedule = fl::schedule_kind::gpipe;
  replay(problem_of<linears<3>>(costs, 2), p, two);
  replay(problem_of<linears<3>>(slow, 2), p, three);
  CHECK(one.first_of_link(1, 0, "cotangent") == "cotangent:273-277>377");
  CHECK(two.first_of_link(1, 0, "cotangent") == "cotangent:293-297>397");
  CHECK(three.of_peer(1) == "0-5 289-309 309-329 329-349 349-369");
}

TEST_CASE("replicas pass gradients on in order, the last one to the owner, who sends the new values") {
  const fl::cost_model costs = flat_costs(2, 10, line);
  auto problem = problem_of<linears<1>>(costs, 2);
  problem.groups = 2;
  notebook n;
  const nanoseconds step = replay(problem, plan_of({0, 0, 0, 0}, {{0, 1}}, 2, 2), n);
  // Peer 0 owns everything and goes on at 5, peer 1 when the new values have come, at 420. Weight 256 and bias 32 bytes:
  // to replica 1, which adds and sends both back when it has both.
  CHECK(n.of_peer(0) == "0-5 5-25 25-45");
  CHECK(n.of_peer(1) == "420-440 440-460");
  CHECK(n.of_link(0, 1) == "answer:0-32>132 value:32-288>388 value:288-320>420 gradient:320-576>676 gradient:576-608>708");
  CHECK(n.of_link(1, 0) == "summary:708-728>828 gradient:728-984>1084 gradient:984-1016>1116");
  CHECK(step == 1116);
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
  const auto g = fl::graph_of<two_islands>();
  fl::plan p = plan_of({}, {{0}, {1}, {2}, {3}});
  for (const auto& n : g.nodes) {
    const char name = n.params[0] < 0 ? 'b' : g.params[std::size_t(n.params[0])].path.view()[0];
    p.stage_of.push_back(n.op->placeholder ? 0 : name == 'a' ? 0 : name == 'c' ? 1 : name == 'd' ? 3 : 2);
  }
  for (const bool shared : {false, true}) {
    const fl::cost_model costs = costs_with(shared ? 1'000'000'000 : 0);
    notebook n;
    replay(problem_of<two_islands>(costs), p, n);
    CHECK(n.first_of_link(0, 2, "activation") == "activation:42-74>74");  // after an answer of 32 bytes
    CHECK(n.first_of_link(1, 3, "activation") == (shared ? "activation:74-106>106" : "activation:42-74>74"));
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
  CHECK(n.first_of_link(0, 1, "activation") == "activation:165-173>273");  // at 157, 8 ns to encode, 8 bytes
  CHECK(n.of_peer(1) == "0-5 281-301 301-321");                            // 8 ns to decode
  CHECK(n.first_of_link(1, 0, "cotangent") == "cotangent:321-353>453");
  CHECK(n.messages[1].raw_bytes == 32);
}

TEST_CASE("a peer begins its next step while others wait for new values, and the second step is as every later one") {
  // The tied embedding is owned by peer 0; peer 1 gets it over a slow link before it can begin.
  fl::u64 state = 5;
  const auto below = [&](int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return int((state >> 33) % fl::u64(n));
  };
  int same = 0;
  for (int k = 0; k < 60; ++k) {
    const int peers = 2 + below(3);
    fl::cost_model costs = flat_costs(peers, 10, {1, 1});
    for (int a = 0; a < peers; ++a) {
      set_speed(costs, a, 100 + below(1000));
      for (int b = 0; b < peers; ++b) costs.set_path(a, b, {below(20000), fl::u64(10'000'000) << below(8)});
    }
    const auto problem = problem_of<gpt<2, 16>>(costs, 4, {2, 4});
    fl::plan p;
    p.micro_batches = 4;
    for (int i = 0; i < problem.graph.size(); ++i) p.stage_of.push_back(i * peers / problem.graph.size());
    for (int s = 0; s < peers; ++s) p.peers.push_back({s});
    notebook two, three, five;
    const nanoseconds second = replay(problem, p, two), third = replay(problem, p, three, 3), fifth = replay(problem, p, five, 5);
    CHECK(fifth <= second + second / 50);
    CHECK(second <= fifth + fifth / 50);
    same += second == third && third == fifth;
    CHECK(two.messages.size() == five.messages.size());
    CHECK(two.computes.size() == five.computes.size());
  }
  CHECK(same > 40);
}
