// SPDX-License-Identifier: Apache-2.0
// Questions over a cluster on virtual time: each peer gets the weights of its stage and no others, answers have the bits
// of one process, and whatever happens everyone ends within the bounds, with an error that names whom it waited for.
#include <fusionllm/cluster/broker_questions.hpp>

#include <cmath>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using device = fl::reference<float>;

saved_state some_weights() {
  saved_state s;
  for (const auto& p : case_binding().graph.params) {
    std::vector<float> w(p.count());
    fl::initialize(w.data(), p, 3);
    const auto bytes = std::as_bytes(std::span(w));
    s.parts.emplace_back(bytes.begin(), bytes.end());
    s.parts.emplace_back(bytes.size());
    s.parts.emplace_back(bytes.size());
  }
  return s;
}
const saved_state& weights() {
  static const saved_state s = some_weights();
  return s;
}

fl::inference alone(int node, fl::sizes bounds, fl::inference_kind kind = fl::inference_kind::whole) {
  static device::context context;
  const fl::device_binding d{fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  return fl::inference(case_binding().graph, node, d, bounds, [](int p) -> void* { return const_cast<std::byte*>(weights().parts[std::size_t(p) * 3].data()); }, kind);
}
std::vector<float> floats(const fl::tensor_ref& r) { return {r.as<float>(), r.as<float>() + r.count()}; }

int logits() { return fl::find_output(case_binding().graph, "logits"); }
fl::cluster_settings asked(int peers, std::vector<fl::forward_output> outputs) {
  fl::cluster_settings s = small_run(peers);
  s.outputs = std::move(outputs);
  return s;
}

/// Questions and answers of a test, over the cluster's broker.
struct talk {
  explicit talk(virtual_cluster& cluster) : c(cluster), inputs(case_binding().graph.nodes.size()) {}
  bool ready() { return wait([&] { return c.broker().answering(); }); }
  template <class Done>
  bool wait(Done&& done) {
    c.time().run_while([&] { return c.broker_ends == 0 && !done(); }, 100 * fl::second);
    return c.broker_ends == 0 && done();
  }
  void ask(int output, fl::question q, const token_batch& b) {
    inputs[0] = b.tokens.data();
    inputs[1] = b.targets.data();
    c.broker().ask(output, q, inputs);
  }
  std::vector<float> answer(int output) {
    if (!wait([&] { return c.broker().answered(output); })) return {};
    return floats(c.broker().take(output, memory));
  }
  virtual_cluster& c;
  std::vector<const void*> inputs;
  std::vector<std::byte> memory;
};

token_batch batch_of(i64 rows, i64 time, u64 step) {
  token_batch b(rows, time);
  b.fill(step, case_gpt::vocabulary);
  return b;
}

}  // namespace

TEST_CASE("answers over peers have the bits of one process, several under way, in the order of the questions") {
  for (int peers : {1, 2, 3, 4}) {
    const fl::sizes bounds{3, 12};
    virtual_cluster c(asked(peers, {{case_binding().graph.loss, fl::inference_kind::whole, bounds}, {logits(), fl::inference_kind::whole, bounds}}), 5, &weights());
    c.join_all();
    talk t(c);
    REQUIRE(t.ready());
    CHECK(c.broker().window(0) == peers + 1);
    fl::inference loss = alone(case_binding().graph.loss, bounds), logit = alone(logits(), bounds);
    std::vector<token_batch> asked_about;
    for (u64 q = 0; q < 6; ++q) asked_about.push_back(batch_of(1 + i64(q % 3), 12 - i64(q), q));
    std::size_t next = 0;
    for (std::size_t q = 0; q < asked_about.size(); ++q) {
      for (; next < asked_about.size() && next < q + std::size_t(c.broker().window(0)); ++next)
        for (int o : {0, 1}) t.ask(o, {{asked_about[next].rows, asked_about[next].time}, 0, 0.5, false}, asked_about[next]);
      const auto& b = asked_about[q];
      std::vector<const void*> inputs(case_binding().graph.nodes.size());
      inputs[0] = b.tokens.data();
      inputs[1] = b.targets.data();
      CHECK(t.answer(0) == floats(loss.run({b.rows, b.time}, inputs, 0.5)));
      CHECK(t.answer(1) == floats(logit.run({b.rows, b.time}, inputs, 0.5)));
    }
    c.broker().finish();
    REQUIRE(c.run());
    CHECK(c.why.code() == fl::errc::ok);
    for (int i = 0; i < peers; ++i) CHECK(c.at(i).why.code() == fl::errc::ok);
  }
}

TEST_CASE("each peer holds the weights of its own stage alone") {
  virtual_cluster c(asked(3, {{case_binding().graph.loss, fl::inference_kind::whole, {2, 12}}}), 1, &weights());
  c.join_all();
  talk t(c);
  REQUIRE(t.ready());
  const fl::graph_view& g = case_binding().graph;
  int held = 0;
  for (int i = 0; i < 3; ++i) {
    fl::forward_stage* s = c.at(i).it->the_forward_stage();
    REQUIRE(s);
    CHECK(!c.at(i).it->the_engine());
    for (int p = 0; p < int(g.params.size()); ++p) {
      bool mine = false;
      for (int n = 0; n < g.size(); ++n)
        for (int x : g.nodes[std::size_t(n)].params) mine = mine || (x == p && c.planned.stage_of[std::size_t(n)] == c.planned.stage_of_peer(i));
      CHECK(s->weights().held(p) == mine);
      if (!mine) continue;
      ++held;
      const auto& sent = weights().parts[std::size_t(p) * 3];
      CHECK(std::equal(sent.begin(), sent.end(), s->weights().of(p).begin()));
    }
  }
  CHECK(held == int(g.params.size()) + 1);  // the tied one twice
}

TEST_CASE("a decoder over peers goes on from what each peer has kept") {
  virtual_cluster c(asked(3, {{logits(), fl::inference_kind::decoding, {1, 12}}}), 2, &weights());
  c.join_all();
  talk t(c);
  REQUIRE(t.ready());
  fl::inference decoder = alone(logits(), {1, 12}, fl::inference_kind::decoding);
  const token_batch b = batch_of(1, 12, 4);
  i64 past = 0;
  for (const i64 n : {6, 1, 1, 1, 3}) {
    token_batch part(1, n);
    std::copy_n(b.tokens.begin() + past, n, part.tokens.begin());
    std::vector<const void*> inputs(case_binding().graph.nodes.size());
    inputs[0] = part.tokens.data();
    const std::vector<float> whole = floats(decoder.run({1, n}, inputs, 1, past));
    t.ask(0, {{1, n}, past, 1, true}, part);
    CHECK(t.answer(0) == std::vector<float>(whole.end() - case_gpt::vocabulary, whole.end()));
    past += n;
  }
}

TEST_CASE("questions to peers that die, freeze or are cut off end with an error that names them, within the bounds") {
  const auto s = asked(3, {{case_binding().graph.loss, fl::inference_kind::whole, {3, 12}}});
  for (u64 seed = 1; seed <= 12; ++seed)
    for (int what = 0; what < 4; ++what) {
      virtual_cluster c(s, seed, &weights());
      c.join_all();
      talk t(c);
      REQUIRE(t.ready());
      const std::string victim = "peer" + std::to_string(seed % 3), other = "peer" + std::to_string((seed + 1) % 3);
      const token_batch b = batch_of(3, 12, seed);
      t.ask(0, {{3, 12}, 0, 1, false}, b);
      t.ask(0, {{3, 12}, 0, 1, false}, b);
      const fl::nanoseconds when = c.time().now() + fl::nanoseconds(seed) * 4 * fl::millisecond;
      c.time().at(when, [&] {
        if (what == 0) c.network().kill(victim);
        if (what == 1) c.network().kill(victim, fl::death::power);
        if (what == 2) c.network().freeze(victim);
        if (what == 3) c.network().cut(victim, other), c.network().cut(other, victim);
      });
      INFO("fault " << what << ", seed " << seed << ", " << victim);
      for (int i = 0; i < 20 && c.broker_ends == 0; ++i) {
        if (t.answer(0).empty()) break;
        if (c.broker_ends == 0) t.ask(0, {{3, 12}, 0, 1, false}, b);
      }
      // Answers may have gone on without a lost pair of peers that have nothing to say to each other: its silence ends that.
      c.time().run_while([&] { return c.broker_ends == 0; }, 30 * fl::second);
      REQUIRE(c.broker_ends == 1);
      INFO(c.why.what());
      CHECK((c.why.code() == fl::errc::peer_lost || c.why.code() == fl::errc::timeout));
      CHECK(std::string(c.why.what()).find("peer") != std::string::npos);
      CHECK(c.ended_at <= when + s.silence_timeout + 2 * s.heartbeat + fl::second);
      REQUIRE(c.run());
      for (int i = 0; i < 3; ++i)
        if (c.at(i).node.is_alive() && !c.at(i).node.is_stopped()) CHECK(c.at(i).ends == 1);
    }
}

TEST_CASE("a peer that computes for ever is named by the others and by the broker; idle peers wait for questions as long as it takes") {
  auto s = asked(2, {{case_binding().graph.loss, fl::inference_kind::whole, {3, 12}}});
  s.machines->peers[0].flops_per_second = 100;  // an emulated device that takes hours
  virtual_cluster c(s, 1, &weights());
  c.join_all();
  talk t(c);
  REQUIRE(t.ready());
  c.time().run_while([] { return true; }, 60 * fl::second);  // longer than any timeout
  REQUIRE(c.broker_ends == 0);
  t.ask(0, {{3, 12}, 0, 1, false}, batch_of(3, 12, 1));
  const fl::nanoseconds began = c.time().now();
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::timeout);
  CHECK(std::string(c.why.what()).find("peer1: peer1 has been waiting 8 s for peer0 for the activation of node") == std::string::npos);
  CHECK(std::string(c.why.what()).find("has been waiting 8 s for peer0 for the activation of node") != std::string::npos);
  CHECK(c.ended_at - began <= s.step_timeout + 3 * fl::second);
}

TEST_CASE("weights that cannot be read end the run before a question, and blame no peer") {
  saved_state other = weights();
  other.parts[0].resize(8);
  virtual_cluster c(asked(2, {{logits(), fl::inference_kind::whole, {2, 12}}}), 1, &other);
  c.join_all();
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::checkpoint);
  CHECK(std::string(c.why.what()).find("8 bytes of wte.weight") != std::string::npos);
}

TEST_CASE("a peer that is asked to stop ends the questions for all") {
  virtual_cluster c(asked(2, {{logits(), fl::inference_kind::whole, {2, 12}}}), 1, &weights());
  c.join_all();
  talk t(c);
  REQUIRE(t.ready());
  c.at(1).it->request_stop();
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::interrupted);
  CHECK(c.at(1).why.code() == fl::errc::interrupted);
}
