// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/stage_layout.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "graph_runner.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using device = fl::reference<float>;
using narrow = tied_gpt<10>;

struct laid {
  fl::program prog;
  fl::stage_layout layout;
};
template <class Model>
laid lay(const fl::plan& p, int stage, const fl::sizes& s = {4, 12}) {
  const auto g = fl::graph_of<Model>();
  laid r{fl::compile(g, p), {}};
  r.layout = fl::lay_out(g, r.prog, fl::device_table<Model, device>(), stage, s, 4);
  return r;
}
u64 bytes_of(const fl::stage_layout& l, int slots) { return l.scratch_bytes + l.workspace_bytes + u64(slots) * l.slot_bytes; }

// What a peer of the plan needs, with the slots that its dispatcher asks for.
u64 arena_of(const fl::plan& p, int stage) {
  const laid x = lay<narrow>(p, stage);
  return bytes_of(x.layout, fl::dispatcher(x.prog, p, stage, 0).slots());
}

}  // namespace

TEST_CASE("each of four stages needs less memory than one stage has to have") {
  const int n = fl::graph_of<narrow>().size();
  for (auto schedule : {fl::schedule_kind::gpipe, fl::schedule_kind::one_f_one_b}) {
    fl::plan one = chain_plan(n, {{0}}, 8, 1), four = chain_plan(n, {{0}, {1}, {2}, {3}}, 8, 1);
    one.schedule = four.schedule = schedule;
    const u64 whole = arena_of(one, 0);
    for (int s = 0; s < 4; ++s) {
      INFO(fl::name_of(schedule) << ", stage " << s);
      if (schedule == fl::schedule_kind::gpipe) CHECK(arena_of(four, s) < whole);
      CHECK(lay<narrow>(four, s).layout.slot_bytes < lay<narrow>(one, 0).layout.slot_bytes + lay<narrow>(one, 0).layout.scratch_bytes);
    }
  }
}

TEST_CASE("the logits have one copy: their cotangent lies over them; additions pass theirs on") {
  const auto g = fl::graph_of<narrow>();
  const laid x = lay<narrow>(chain_plan(g.size(), {{0}}), 0);
  const auto& l = x.layout;
  const int logits = g.nodes[std::size_t(g.loss)].in[0];
  CHECK(l.places[std::size_t(l.index.output(logits))].root == l.places[std::size_t(l.index.partial(logits, 0))].root);
  int passed = 0;
  for (int n = 0; n < g.size(); ++n)
    for (std::size_t k = 0; k < 2; ++k) {
      const auto& o = g.nodes[std::size_t(n)];
      if (o.in[k] < 0 || !(o.op->passes_cotangent >> k & 1) || x.prog.uses[std::size_t(n)].empty()) continue;
      const auto& uses = x.prog.uses[std::size_t(o.in[k])];
      if (uses.empty() || uses.back() != fl::use{n, int(k)}) continue;
      CHECK(l.places[std::size_t(l.index.partial(o.in[k], int(uses.size()) - 1))].root == l.places[std::size_t(l.index.partial(n, 0))].root);
      ++passed;
    }
  CHECK(passed >= 4);
}

TEST_CASE("with several tasks a value that a later task needs is in a slot, one that none needs is scratch") {
  const auto g = fl::graph_of<narrow>();
  const fl::plan p = chain_plan(g.size(), {{0}, {1}});
  const laid x = lay<narrow>(p, 1);
  CHECK(x.layout.slot_bytes > 0);
  CHECK(x.layout.scratch_bytes > 0);
  for (int n = 0; n < g.size(); ++n) {
    if (p.stage_of[std::size_t(n)] != 1 || g.nodes[std::size_t(n)].op->placeholder || !g.nodes[std::size_t(n)].op->saves_output) continue;
    CHECK(!x.layout.places[std::size_t(x.layout.index.output(n))].scratch);
  }
}

// The engine packs, shares and overwrites; graph_runner keeps every value apart. With one micro-batch both add in one
// order, so that any value that was overwritten too early shows in a bit.
template <class Model>
void check_against_apart(i64 rows, int vocabulary) {
  const auto g = fl::graph_of<Model>();
  for (int stages : {1, 2, 3, 5}) {
    std::vector<std::vector<int>> peers;
    for (int i = 0; i < stages; ++i) peers.push_back({i});
    group_options o;
    o.bounds = {rows, Model::time};
    o.optimizer.kind = fl::optimizer_kind::sgd;
    o.optimizer.learning_rate = 1;
    o.optimizer.momentum = 0;
    o.optimizer.adamw.weight_decay = 0;
    o.optimizer.clip_norm = 0;
    engine_group<Model, device> packed(chain_plan(g.size(), peers, 1, 1), o);
    device::context context;
    graph_runner<device> apart(g, fl::device_table<Model, device>(), {rows, Model::time}, context);
    token_batch b(rows, Model::time);
    b.fill(0, vocabulary);
    apart.integers(0).assign(b.tokens.begin(), b.tokens.end());
    apart.integers(1).assign(b.targets.begin(), b.targets.end());
    for (int p = 0; p < apart.parameter_count(); ++p) fl::initialize(apart.parameter(p).data(), g.params[std::size_t(p)], o.seed);
    apart.key = {o.seed, 0, 0, 0};
    const double loss = apart.forward();
    apart.backward();
    CHECK(packed.step(b.data(0, g)).verdict.loss == loss);
    const auto weights = packed.weights();
    for (int p = 0; p < apart.parameter_count(); ++p) {
      INFO(stages << " stages, " << g.params[std::size_t(p)].path.view());
      std::vector<float> moved(apart.parameter(p).size()), found(moved.size());
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = apart.parameter(p)[i] - apart.gradient(p)[i];
      std::memcpy(found.data(), weights.at(std::string(g.params[std::size_t(p)].path.view())).data(), found.size() * 4);
      if (g.params[std::size_t(p)].path.view() == "wte.weight") continue;  // its two uses are added apart here, in one there
      CHECK(found == moved);
    }
  }
}

/// Values with several consumers, additions of additions, one value twice, chains of in-place operators.
struct tangled {
  static constexpr int vocabulary = 13, time = 5;
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<vocabulary, 8>(g, "wte.weight");
    auto e = fl::embedding(tokens, wte) | fl::positions<time>;
    auto a = e | fl::linear<8>;
    auto b = a | fl::layer_norm;
    auto c = (a + b) + (e + a);
    auto d = c * c;
    auto x = d + (c | fl::causal_attention<2>);
    auto y = x * (b | fl::linear<8> | fl::gelu | fl::relu);
    auto z = fl::output("z", y + y) + (d | fl::relu);
    return fl::cross_entropy(z | fl::linear<vocabulary>, targets);
  }
};

TEST_CASE("packed, shared and overwritten values give the bits of values kept apart") {
  check_against_apart<narrow>(3, narrow::vocabulary);
  check_against_apart<tangled>(2, tangled::vocabulary);
}
