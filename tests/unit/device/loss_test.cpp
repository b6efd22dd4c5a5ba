// SPDX-License-Identifier: Apache-2.0
// A batch in micro-batches: loss and gradients are those of the whole batch.
#include <fusionllm/device/reference/loss.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

struct plain_gpt {  // without dropout, whose masks are a micro-batch's own
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto wte = fl::parameter<11, 12>(g, "wte.weight");
    auto x = fl::embedding(tokens, wte) | fl::positions<9> | fl::residual(fl::layer_norm | fl::causal_attention<3>)
             | fl::layer_norm;
    return fl::cross_entropy(fl::project(x, wte), targets, ignored);
  }
  static constexpr int ignored = -100;
};
struct line {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 2>(g, "y");
    return fl::mean_squared_error(x | fl::linear<2>, y);
  }
};

using device = fl::reference<double>;
using run = graph_runner<device>;

void copy_rows(run& from, run& to, i64 first, i64 rows, i64 batch) {
  for (int p = 0; p < from.parameter_count(); ++p) to.parameter(p) = from.parameter(p);
  for (int i = 0; i < from.graph().size(); ++i) {
    if (!from.graph().nodes[std::size_t(i)].op->placeholder) continue;
    auto part = [&](auto& whole, auto& piece) {
      const i64 row = i64(whole.size()) / batch;
      std::copy_n(whole.begin() + first * row, rows * row, piece.begin());
    };
    part(from.value(i), to.value(i));
    part(from.integers(i), to.integers(i));
  }
}

template <class Model, class Prepare>
void check_micro_batches(i64 time, int vocabulary, Prepare&& prepare, u64 terms_of_empty_piece) {
  device::context c;
  const auto g = fl::graph_of<Model>();
  const auto table = fl::device_table<Model, device>();
  run whole(g, table, {10, time}, c);
  whole.randomize(3, vocabulary);
  prepare(whole);
  const double loss = whole.forward();
  whole.backward();

  auto counted = [&](run& r, i64 batch) {
    const int targets = g.nodes[std::size_t(g.loss)].in[1];
    const void* data =
        r.integers(targets).empty() ? static_cast<const void*>(r.value(targets).data()) : r.integers(targets).data();
    return g.nodes[std::size_t(g.loss)].op->counted(g.view(g.loss, {batch, time}), data);
  };
  const u64 terms = counted(whole, 10);
  u64 terms_of_pieces = 0;
  double sum = 0;
  std::vector<std::vector<double>> gradients;
  i64 first = 0;
  for (const i64 rows : {3, 3, 2, 2}) {
    run piece(g, table, {rows, time}, c);
    copy_rows(whole, piece, first, rows, 10);
    piece.loss_scale = 1.0 / double(terms);
    const double share = piece.forward();
    piece.backward();
    const u64 own = counted(piece, rows);
    terms_of_pieces += own;
    if (own == terms_of_empty_piece) CHECK(share == 0);
    for (int p = 0; p < piece.parameter_count(); ++p) {
      if (own == terms_of_empty_piece)
        for (double x : piece.gradient(p)) CHECK(x == 0);
      if (first == 0)
        gradients.push_back(piece.gradient(p));
      else
        for (std::size_t i = 0; i < piece.gradient(p).size(); ++i) gradients[std::size_t(p)][i] += piece.gradient(p)[i];
    }
    sum += share;
    first += rows;
  }
  CHECK(terms_of_pieces == terms);
  CHECK(std::abs(sum - loss) < 1e-12 * loss);
  for (int p = 0; p < whole.parameter_count(); ++p)
    CHECK(distance(gradients[std::size_t(p)], whole.gradient(p)) < 1e-12);
}

}  // namespace

TEST_CASE("micro-batches of 3, 3, 2, 2 with masked tokens, one all masked, equal the whole batch") {
  check_micro_batches<plain_gpt>(
      7, 11,
      [](run& r) {
        auto& targets = r.integers(1);
        for (std::size_t i = 0; i < targets.size(); ++i)
          if (i % 5 == 2 || (i / 7 >= 6 && i / 7 < 8))
            targets[i] = plain_gpt::ignored;  // rows 6 and 7: the third micro-batch
      },
      0);
}

TEST_CASE("micro-batches of a regression equal the whole batch") {
  check_micro_batches<line>(
      1, 1, [](run&) {}, 99);
}

TEST_CASE("a batch with nothing to count has loss 0 and gradients 0") {
  device::context c;
  run r(fl::graph_of<plain_gpt>(), fl::device_table<plain_gpt, device>(), {2, 3}, c);
  r.randomize(1, 11);
  r.integers(1).assign(6, plain_gpt::ignored);
  for (const double scale : {0.0, std::numeric_limits<double>::infinity()}) {
    r.loss_scale = scale;
    CHECK(r.forward() == 0);
    r.backward();
    for (int p = 0; p < r.parameter_count(); ++p)
      for (double x : r.gradient(p)) CHECK(x == 0);
  }
}

TEST_CASE("cross-entropy may write its cotangent over the logits") {
  device::context c;
  run a(fl::graph_of<plain_gpt>(), fl::device_table<plain_gpt, device>(), {2, 5}, c);
  run b(fl::graph_of<plain_gpt>(), fl::device_table<plain_gpt, device>(), {2, 5}, c);
  b.reuse_input = true;
  b.in_place = true;
  for (run* r : {&a, &b}) {
    r->randomize(1, 11);
    r->forward();
    r->backward();
  }
  for (int p = 0; p < a.parameter_count(); ++p) CHECK(a.gradient(p) == b.gradient(p));
}

TEST_CASE("large logits neither overflow nor lose the loss") {
  device::context c;
  run r(fl::graph_of<plain_gpt>(), fl::device_table<plain_gpt, device>(), {1, 4}, c);
  r.randomize(1, 11, 30.0);
  CHECK(std::isfinite(r.forward()));
  r.backward();
  for (int p = 0; p < r.parameter_count(); ++p)
    for (double x : r.gradient(p)) CHECK(std::isfinite(x));
}
