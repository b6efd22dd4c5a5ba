// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/engine.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"
#include "same_bits.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("reference: the same bits for every plan, schedule and order of messages") {
  same_bits<fl::reference<float>>{20, 12};
}

TEST_CASE("reference in double: the same bits for every plan") { same_bits<fl::reference<double>>{5, 2}; }

namespace {

/// One parameter with four uses, whose gradients are added in graph order wherever they are.
struct often_tied {
  static constexpr int vocabulary = 23, time = 12;
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<vocabulary, 8>(g, "wte.weight");
    auto a = fl::embedding(tokens, wte) | fl::positions<time> | fl::linear<8> | fl::gelu;
    auto b = fl::embedding(tokens, wte) + (a | fl::causal_attention<2> | fl::dropout(0.1));
    auto c = fl::embedding(tokens, wte) + (b | fl::layer_norm | fl::linear<8>);
    return fl::cross_entropy(fl::project(c | fl::layer_norm, wte), targets);
  }
};

}  // namespace

TEST_CASE("a parameter with four uses: the same bits for every plan") { same_bits<fl::reference<float>, often_tied>{8, 6}; }

TEST_CASE("messages' delays do not change a bit, nor do emulated devices") {
  using group = engine_group<case_gpt, fl::reference<float>>;
  const int n = fl::graph_of<case_gpt>().size();
  group_options o;
  o.optimizer = lively_optimizer();
  const fl::plan p = chain_plan(n, {{0}, {1, 2}, {3}});
  group first(p, o);
  first.train(6);
  for (u64 delays = 2; delays < 6; ++delays) {
    o.delays = delays;
    o.emulate = delays % 2 == 0;
    group other(p, o);
    other.train(6);
    CHECK(other.losses == first.losses);
    CHECK(other.weights() == first.weights());
  }
}

TEST_CASE("peers that run ahead of each other: what comes early waits for its step") {
  using group = engine_group<case_gpt, fl::reference<float>>;
  const int n = fl::graph_of<case_gpt>().size();
  group_options o;
  o.optimizer = lively_optimizer();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}, {1}, {2}, {3}}, {{0, 1}, {2, 3}}, {{2}, {0, 1}}}) {
    group together(chain_plan(n, peers), o);
    together.train(8);
    for (u64 delays = 2; delays < 5; ++delays) {
      group_options fast = o;
      fast.delays = delays;
      fast.emulate = true;
      group ahead(chain_plan(n, peers), fast);
      ahead.race(8);
      CHECK(ahead.weights() == together.weights());
      CHECK(ahead.report().verdict.loss == together.losses.back());
    }
  }
}

TEST_CASE("a compressed run repeats itself to the bit, and differs from a lossless one") {
  using group = engine_group<case_gpt, fl::reference<float>>;
  const int n = fl::graph_of<case_gpt>().size();
  const fl::plan p = chain_plan(n, {{0}, {1}, {2}});
  group_options lossless;
  lossless.optimizer = lively_optimizer();
  group exact(p, lossless);
  exact.train(8);
  for (const char* codec : {"ada_top_k", "uniform_top_k", "int8", "half_precision"}) {
    group_options o;
    o.optimizer = lively_optimizer();
    o.codec = codec;
    group a(p, o);
    o.delays = 9;
    group b(p, o);
    a.train(8);
    b.train(8);
    INFO(codec);
    CHECK(a.weights() == b.weights());
    CHECK(a.losses == b.losses);
    CHECK(a.weights() != exact.weights());
    u64 raw = 0, encoded = 0;
    for (const auto& t : a.engine(0).traffic()) raw += t.raw, encoded += t.encoded;
    CHECK(encoded < raw);
  }
}

namespace {

using plain_group = engine_group<tied_gpt<0>, fl::reference<double>>;

// Plain gradient descent with rate 1 and without anything else: a parameter's change is its gradient.
group_options descent(const std::string& codec = std::string(fl::no_compression::label)) {
  group_options o;
  o.optimizer.kind = fl::optimizer_kind::sgd;
  o.optimizer.learning_rate = 1;
  o.optimizer.momentum = 0;
  o.optimizer.adamw.weight_decay = 0;
  o.optimizer.clip_norm = 0;
  o.codec = codec;
  return o;
}
std::map<std::string, std::vector<double>> numbers(const named_bits& bits) {
  std::map<std::string, std::vector<double>> r;
  for (const auto& [name, b] : bits) {
    r[name].resize(b.size() / sizeof(double));
    std::memcpy(r[name].data(), b.data(), b.size());
  }
  return r;
}
// The loss and all gradients of one step.
std::map<std::string, std::vector<double>> gradients(plain_group& g, i64 rows, i64 masked_begin, i64 masked_end) {
  auto r = numbers(g.weights());
  const double loss = g.train(1, rows, masked_begin, masked_end);
  for (const auto& [name, after] : numbers(g.weights()))
    for (std::size_t i = 0; i < after.size(); ++i) r[name][i] -= after[i];
  r["loss"] = {loss};
  return r;
}
void check_near(const std::map<std::string, std::vector<double>>& a, const std::map<std::string, std::vector<double>>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, x] : a) {
    INFO(name);
    const auto& y = b.at(name);
    REQUIRE(x.size() == y.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      difference += (x[i] - y[i]) * (x[i] - y[i]);
      norm += y[i] * y[i];
    }
    CHECK(std::sqrt(difference) <= 1e-13 * std::sqrt(norm) + 1e-15);
  }
}

}  // namespace

TEST_CASE("micro-batches of 3, 3, 2, 2 rows, one of them all masked, are one full batch to rounding") {
  const int n = fl::graph_of<tied_gpt<0>>().size();
  group_options o = descent();
  o.bounds.batch = 10;
  plain_group whole(chain_plan(n, {{0}}, 1, 1), o);
  const auto expected = gradients(whole, 10, 3, 6);
  for (const auto& [name, x] : expected) CHECK(std::count(x.begin(), x.end(), 0.0) < std::ptrdiff_t(x.size()));
  o.bounds.batch = 3;
  plain_group four(chain_plan(n, {{0}}, 4, 2), o), cut(chain_plan(n, {{0}, {1}, {2}}, 4, 4), o), replicas(chain_plan(n, {{0, 1}, {2}}, 4, 4), o);
  for (auto* g : {&four, &cut, &replicas}) check_near(gradients(*g, 10, 3, 6), expected);
}

TEST_CASE("a micro-batch whose targets are all masked adds exactly nothing") {
  const int n = fl::graph_of<tied_gpt<0>>().size();
  plain_group g(chain_plan(n, {{0}}, 4, 4), descent());
  gradients(g, 10, 3, 6);  // rows 3 to 5 are micro-batch 1, alone in group 1
  std::size_t seen = 0;
  CHECK(g.engine(0).compute().losses()[1] == 0);
  for (const auto& u : g.engine(0).parameters().uses())
    for (std::size_t i = 0; i < g.graph().params[std::size_t(u.parameter)].count(); ++i)
      seen += reinterpret_cast<const double*>(u.groups[1])[i] != 0;
  CHECK(seen == 0);
  CHECK(gradients(g, 10, 0, 10)["loss"] == std::vector<double>{0});  // nothing counts in the whole batch
}

TEST_CASE("fewer rows than micro-batches: the empty ones are passed on and add nothing") {
  const int n = fl::graph_of<tied_gpt<0>>().size();
  for (const std::string codec : {"no_compression", "ada_top_k", "int8", "half_precision"}) {
    INFO(codec);
    const group_options o = descent(codec);
    plain_group one(chain_plan(n, {{0}}, 4, 2), o), two(chain_plan(n, {{0}, {1}}, 4, 2), o), again(chain_plan(n, {{0}, {1}}, 4, 2), o);
    const auto expected = gradients(one, 2, 0, 0);
    if (codec == "no_compression") check_near(gradients(two, 2, 0, 0), expected);
    else CHECK(gradients(two, 2, 0, 0) == gradients(again, 2, 0, 0));
  }
}

TEST_CASE("a step that is not finite is skipped by all, and the next one is not") {
  using group = engine_group<case_gpt, fl::reference<float>>;
  const int n = fl::graph_of<case_gpt>().size();
  group_options o;
  o.optimizer = lively_optimizer();
  group g(chain_plan(n, {{0}, {1}, {2, 3}}), o), one(chain_plan(n, {{0}}), o);
  for (auto* x : {&g, &one}) {
    // A cotangent that is not sent on: that of the embedding, which is the last node to go backward.
    x->engine(0).compute().observe([x](int node, int micro_batch, bool backward, const fl::tensor_ref& t) {
      if (node == 2 && backward && micro_batch == 1 && x->engine(0).next_step() == 2) t.as<float>()[5] = std::numeric_limits<float>::infinity();
    });
    x->train(2);
    const auto before = x->weights();
    x->train(1);
    for (int i = 0; i < x->size(); ++i) CHECK(x->report(i).verdict.skipped);
    CHECK(x->weights() == before);
    x->train(2);
    CHECK(!x->report().verdict.skipped);
    CHECK(x->weights() != before);
  }
  CHECK(g.weights() == one.weights());
}

TEST_CASE("a batch beyond the bounds, or the wrong step, is refused before anything happens") {
  using group = engine_group<case_gpt, fl::reference<float>>;
  group g(chain_plan(fl::graph_of<case_gpt>().size(), {{0}}), {});
  token_batch b(13, case_gpt::time);
  CHECK(error_of([&] { g.step(b.data(0, g.graph())); }).says(fl::errc::model, "13 rows", "at most 12"));
  token_batch wide(1, 13);
  CHECK(error_of([&] { g.step(wide.data(0, g.graph())); }).code == fl::errc::model);
  token_batch good(10, case_gpt::time);
  CHECK(error_of([&] { g.step(good.data(1, g.graph())); }).code == fl::errc::internal);
  CHECK(error_of([&] { g.step(good.data(0, g.graph())); }).code == fl::errc::ok);
}
