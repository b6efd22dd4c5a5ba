// SPDX-License-Identifier: Apache-2.0
// Case C03: a step that meets an infinity or a NaN anywhere is skipped by all peers, who name the same first operator;
// nothing of the kind is sent; loss spikes; parameters that are left alone.
#include <fusionllm/runtime/engine.hpp>

#include <limits>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using group = engine_group<case_gpt, fl::reference<float>>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr u64 bad_step = 3;

group_options lively() {
  group_options o;
  o.optimizer = lively_optimizer();
  return o;
}

/// Something bad that appears in a value.
struct harm {
  int node, micro_batch;
  bool backward;
  float value = infinity;
};
/// Puts it into the values of step `bad_step`, wherever they are computed.
void do_harm(group& g, std::vector<harm> all) {
  for (int i = 0; i < g.size(); ++i)
    g.engine(i).compute().observe([&g, i, all](int node, int micro_batch, bool backward, const fl::tensor_ref& t) {
      for (const harm& h : all)
        if (g.engine(i).next_step() == bad_step && h.node == node && h.micro_batch == micro_batch && h.backward == backward)
          t.as<float>()[t.count() / 2] = h.value;
    });
}
/// Every message is searched for what is not finite; counts the empty ones.
struct wire_watch {
  int poisoned = 0;
  explicit wire_watch(group& g) {
    g.meddle = [this](int, fl::frame_header& h, std::vector<std::byte>& bytes) {
      poisoned += bytes.empty();
      if (h.kind != fl::frame_kind::gradient && h.kind != fl::frame_kind::parameter) return true;  // codecs search the others
      for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        float x;
        std::memcpy(&x, bytes.data() + i, 4);
        if (!std::isfinite(x)) FAIL("a number that is not finite is on the wire");
      }
      return true;
    };
  }
};

std::vector<fl::plan> plans() {
  const int n = fl::graph_of<case_gpt>().size();
  fl::plan folded = chain_plan(n, {{0}, {1}});
  for (int i = 0; i < n; ++i) folded.stage_of[std::size_t(i)] = i > 4 && i < n - 3;
  fl::plan again = chain_plan(n, {{0}, {1}, {2}});
  again.recompute = fl::recompute_policy::block;
  fl::plan gpipe = chain_plan(n, {{0}, {1}, {2}});
  gpipe.schedule = fl::schedule_kind::gpipe;
  return {chain_plan(n, {{0}}), chain_plan(n, {{0}, {1}, {2}}), chain_plan(n, {{0}, {1, 2}, {3}}), chain_plan(n, {{0, 1}}), folded, again, gpipe};
}

int node_of(std::string_view scope, std::string_view op) {
  const auto g = fl::graph_of<case_gpt>();
  for (int i = 0; i < g.size(); ++i)
    if (g.nodes[std::size_t(i)].scope.view() == scope && g.nodes[std::size_t(i)].op->name == op) return i;
  FAIL("no node " << scope << ' ' << op);
  return -1;
}

}  // namespace

TEST_CASE("harm anywhere: all skip the step, keep every bit, go on, and name the same operator on every plan") {
  const int fc = node_of("h.1.mlp.c_fc", "linear"), attention = node_of("h.0.attn", "attention");
  const int loss = fl::graph_of<case_gpt>().loss;
  struct expectation {
    std::vector<harm> harms;
    fl::fault_kind kind;
    int node, micro_batch;
  };
  const expectation all[] = {
      {{{fc, 1, false}}, fl::fault_kind::activation, fc, 1},
      {{{attention, 2, true, std::nanf("")}}, fl::fault_kind::cotangent, attention, 2},
      {{{loss, 0, false, -infinity}}, fl::fault_kind::loss, loss, 0},
      {{{fc, 3, false}, {attention, 1, true}, {fc, 1, true}}, fl::fault_kind::cotangent, fc, 1},
      {{{fc, 1, false}, {attention, 1, false}, {attention, 0, true}}, fl::fault_kind::cotangent, attention, 0},
  };
  for (const auto& e : all) {
    named_bits final_weights;
    for (const fl::plan& p : plans()) {
      group g(p, lively());
      wire_watch watch(g);
      do_harm(g, e.harms);
      g.train(int(bad_step));
      const auto weights = g.weights(), state = g.optimizer_state();
      g.train(1);
      INFO(fl::describe(g.report().verdict.first, g.graph(), p) << ", " << p.stages() << " stages");
      for (int i = 0; i < g.size(); ++i) {
        const fl::step_verdict& v = g.report(i).verdict;
        CHECK(v.skipped);
        CHECK(v.reason == fl::skip_reason::not_finite);
        CHECK(v.first.kind == e.kind);
        CHECK(int(v.first.node) == e.node);
        CHECK(int(v.first.micro_batch) == e.micro_batch);
        CHECK(int(v.first.peer) == p.peer_of(p.stage_of[std::size_t(e.node)], e.micro_batch));
      }
      CHECK(g.weights() == weights);
      CHECK(g.optimizer_state() == state);
      g.train(3);
      CHECK(!g.report().verdict.skipped);
      CHECK(g.weights() != weights);
      if (final_weights.empty()) final_weights = g.weights();
      CHECK(g.weights() == final_weights);
    }
  }
}

TEST_CASE("a gradient of a tied weight that is not finite is not sent, nor one of a replica") {
  const int n = fl::graph_of<case_gpt>().size();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}}, {{0}, {1}}, {{0, 1}}, {{0}, {1, 2}}}) {
    group g(chain_plan(n, peers), lively());
    wire_watch watch(g);
    // A finite cotangent and a finite input of the tied projection whose product is not.
    const int project = fl::graph_of<case_gpt>().nodes[std::size_t(fl::graph_of<case_gpt>().loss)].in[0];
    do_harm(g, {{g.graph().nodes[std::size_t(project)].in[0], 0, false, 1e4f}, {project, 0, true, 1e36f}});
    g.train(int(bad_step));
    const auto weights = g.weights();
    CHECK(watch.poisoned == 0);
    g.train(1);
    for (int i = 0; i < g.size(); ++i) {
      const fl::fault& f = g.report(i).verdict.first;
      INFO(fl::describe(f, g.graph(), g.engine(0).the_plan()));
      REQUIRE(f.kind == fl::fault_kind::gradient);
      CHECK(g.graph().params[f.parameter].path.view() == "wte.weight");
    }
    CHECK((watch.poisoned > 0) == (peers.size() > 1 || peers[0].size() > 1));
    CHECK(g.weights() == weights);
    g.train(1);
    CHECK(!g.report().verdict.skipped);
  }
}

TEST_CASE("compressed links: what is not finite becomes an empty frame") {
  const int n = fl::graph_of<case_gpt>().size();
  const fl::plan p = chain_plan(n, {{0}, {1}, {2}});
  int cut = 0;
  while (p.stage_of[std::size_t(cut) + 1] == 0) ++cut;
  for (const char* codec : {"no_compression", "ada_top_k", "int8", "half_precision"}) {
    group_options o = lively();
    o.codec = codec;
    group g(p, o);
    wire_watch watch(g);
    do_harm(g, {{cut, 1, false}});
    g.train(int(bad_step));
    CHECK(watch.poisoned == 0);
    const auto weights = g.weights();
    g.train(1);
    INFO(codec);
    CHECK(watch.poisoned >= 1);
    CHECK(g.report().verdict.skipped);
    CHECK(int(g.report().verdict.first.node) == cut);
    CHECK(g.weights() == weights);
    g.train(2);
    CHECK(!g.report().verdict.skipped);
  }
}

TEST_CASE("the reason names operator, kind, micro-batch, stage and peer") {
  const fl::plan p = chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {1}, {2}});
  const int fc = node_of("h.1.mlp.c_fc", "linear");
  group g(p, lively());
  do_harm(g, {{fc, 1, false}});
  g.train(int(bad_step) + 1);
  const int stage = p.stage_of[std::size_t(fc)];
  CHECK(fl::reason_of(g.report().verdict, g.graph(), p, {"a", "b", "c"}) ==
        "the activation of h.1.mlp.c_fc (linear, node " + std::to_string(fc) + "), micro-batch 1, stage " + std::to_string(stage) + " on " +
            std::string(1, char('a' + stage)) + " is not finite");
}

TEST_CASE("a loss spike is skipped once enough steps were accepted; the state of losses goes on where it was") {
  const int n = fl::graph_of<case_gpt>().size();
  const int loss = fl::graph_of<case_gpt>().loss;
  const auto run = [&](group& g, u64 spike, int steps) {
    const int leader = g.size() - 1;
    g.engine(leader).compute().observe([&g, leader, loss, spike](int node, int, bool, const fl::tensor_ref& t) {
      if (node == loss && g.engine(leader).next_step() == spike) *t.as<float>() *= 5;
    });
    g.train(steps);
  };
  group_options o = lively();
  o.skipping.spike_factor = 3;
  group early(chain_plan(n, {{0}, {1}}), o);
  run(early, 15, 16);
  CHECK(!early.report().verdict.skipped);  // 15 losses are not enough
  group g(chain_plan(n, {{0}, {1}}), o);
  run(g, 16, 16);
  const auto weights = g.weights();
  const fl::loss_history before = g.engine(1).history();
  g.train(1);
  for (int i = 0; i < 2; ++i) CHECK(g.report(i).verdict.reason == fl::skip_reason::loss_spike);
  CHECK(g.report().verdict.mean_loss == before.mean());
  CHECK(g.weights() == weights);
  CHECK(fl::reason_of(g.report().verdict, g.graph(), g.engine(0).the_plan()).find("is a spike") != std::string::npos);
  g.train(1);
  CHECK(!g.report().verdict.skipped);
  // Off: the same spike is trained on.
  group off(chain_plan(n, {{0}, {1}}), lively());
  run(off, 16, 17);
  CHECK(!off.report().verdict.skipped);
}

TEST_CASE("a weight that an update makes infinite ends the run and names it") {
  group_options o;
  o.optimizer.kind = fl::optimizer_kind::sgd;
  o.optimizer.learning_rate = 1e300;
  group g(chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {1}}), o);
  CHECK(error_of([&] { g.train(1); }).says(fl::errc::numeric, "the update of step 0", "learning_rate"));
}

TEST_CASE("frozen parameters keep their bits, send no gradients, and the others train the same on every plan") {
  const int n = fl::graph_of<case_gpt>().size();
  group_options o = lively();
  o.optimizer.freeze = {"wte.*", "h.0.*"};
  o.optimizer.no_decay = {"h.1.mlp.c_?c.weight"};
  named_bits expected;
  for (const auto& peers : {std::vector<std::vector<int>>{{0}}, {{0}, {1}, {2}}, {{0, 1}}, {{0}, {1, 2}}}) {
    group g(chain_plan(n, peers), o);
    g.meddle = [&](int, fl::frame_header& h, std::vector<std::byte>&) {
      if (h.kind == fl::frame_kind::gradient || h.kind == fl::frame_kind::parameter)
        CHECK(!fl::fits_pattern("wte.*", g.graph().params[h.edge].path.view()));
      return true;
    };
    const auto before = g.weights();
    g.train(6);
    auto after = g.weights();
    for (const auto& [name, bits] : after) {
      const bool frozen = name.starts_with("wte.") || name.starts_with("h.0.");
      INFO(name);
      CHECK((bits == before.at(name)) == frozen);
    }
    if (expected.empty()) expected = after;
    CHECK(after == expected);
  }
  group_options half = lively();  // of an operator with two parameters, one
  half.optimizer.freeze = {"h.1.mlp.c_fc.bias", "h.0.ln_1.weight"};
  group h(chain_plan(n, {{0}, {1}}), half);
  const auto before = h.weights();
  h.train(2);
  for (const auto& [name, bits] : h.weights())
    CHECK((bits == before.at(name)) == (name == "h.1.mlp.c_fc.bias" || name == "h.0.ln_1.weight"));
  group_options plain = lively();
  plain.optimizer.freeze = o.optimizer.freeze;
  group g(chain_plan(n, {{0}}), plain);
  g.train(6);
  CHECK(g.weights() != expected);  // of the weight that does not decay
}
