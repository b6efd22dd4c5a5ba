// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/model_outputs.hpp>

#include <deque>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

/// Says of each sample what its first token is, and of a batch the sum of these; at most two rows at once.
struct echo final : fl::model_outputs, fl::forward_pass {
  echo() : model_outputs(fl::graph_of<case_gpt>(), fl::dtype::f32, {5, 3}), all(graph().nodes.size(), 1) {}
  forward_pass& pass_of(int node) override { return target = node, *this; }
  const fl::sizes& bounds() const override { return bound; }
  const fl::flags& needed() const override { return all; }
  int window() const override { return 2; }
  void ask(const fl::sizes& s, std::span<const void* const> inputs, double scale, fl::i64 past, bool last) override {
    CHECK((past == 0 && !last));
    const auto* tokens = static_cast<const std::int32_t*>(inputs[0]);
    const auto width = target == graph().loss ? std::size_t(1) : std::size_t(s.batch * s.time * case_gpt::vocabulary);
    answers.emplace_back(width, 0.f);
    for (fl::i64 r = 0; r < s.batch; ++r) answers.back()[width == 1 ? 0 : std::size_t(r) * width / std::size_t(s.batch)] += float(tokens[r * s.time]) * float(scale);
    rows.push_back(s);
    most = std::max(most, answers.size());
  }
  fl::tensor_ref answer() override {
    now = std::move(answers.front());
    answers.pop_front();
    const fl::sizes s = rows.front();
    rows.pop_front();
    return {now.data(), graph().nodes[std::size_t(target)].out.resolve(s), fl::dtype::f32};
  }
  fl::sizes bound{2, 3};
  fl::flags all;
  int target = -1;
  std::deque<std::vector<float>> answers;
  std::deque<fl::sizes> rows;
  std::vector<float> now;
  std::size_t most = 0;
};

}  // namespace

TEST_CASE("a batch is asked about in parts, a window at a time, and answers come in order") {
  echo e;
  token_batch b(5, 3);
  for (std::size_t i = 0; i < b.tokens.size(); ++i) b.tokens[i] = int(i), b.targets[i] = 1;
  const fl::batch_view view{{"tokens", std::span(b.tokens), {5, 3}}, {"targets", std::span(b.targets), {5, 3}}};
  std::vector<float> logits(5 * 3 * case_gpt::vocabulary);
  e.predict(view, {"logits", std::span(logits), {5, 3, case_gpt::vocabulary}});
  for (std::size_t r = 0; r < 5; ++r) CHECK(logits[r * 3 * case_gpt::vocabulary] == float(3 * r));
  CHECK(e.most == 2);
  CHECK(e.answers.empty());
  CHECK(e.evaluate(view) == Approx((0 + 3 + 6 + 9 + 12) / 15.0));
  CHECK(fl::output_node(e.graph(), "loss") == e.graph().loss);
  CHECK(error_of([&] { fl::output_node(e.graph(), "logit"); }).says(fl::errc::model, "no output 'logit'", "loss, logits"));
}
