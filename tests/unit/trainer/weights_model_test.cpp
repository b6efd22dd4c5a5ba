// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/weights_model.hpp>

#include <fusionllm/trainer/accuracy.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;
using trainer = fl::trainer<case_gpt, fl::devices<fl::cpu, fl::reference<double>>>;

namespace {
fl::batch_view view(const token_batch& b) {
  return {{"tokens", std::span(b.tokens), {b.rows, b.time}}, {"targets", std::span(b.targets), {b.rows, b.time}}};
}
}  // namespace

TEST_CASE("a model of weights alone says what its trainer says, to the last bit") {
  temporary_folder folder;
  const std::string path = folder.path() + "/x.ckpt";
  trainer t({.batch = 10, .time = 12, .micro_batches = 4});
  token_batch b(10, 12);
  for (u64 s = 0; s < 3; ++s) {
    b.fill(s, case_gpt::vocabulary);
    t.step(view(b));
  }
  t.save(path);
  const auto& model = trainer::binding();
  const int logits = fl::find_output(model.graph, "logits");
  const fl::checkpoint_reader reader(path);
  const std::vector<fl::forward_output> outputs{{model.graph.loss, fl::inference_kind::whole, {3, 12}, 1}, {logits, fl::inference_kind::whole, {3, 12}, 1}};
  fl::weights_model w(model, "", 1, reader, {10, 12}, outputs);
  fl::model_outputs& any = w;
  for (const fl::sizes s : {fl::sizes{10, 12}, fl::sizes{7, 12}, fl::sizes{1, 3}}) {
    token_batch c(s.batch, s.time);
    c.fill(50, case_gpt::vocabulary);
    CHECK(any.evaluate(view(c)) == t.evaluate(view(c)));
    std::vector<float> theirs(std::size_t(s.batch * s.time * case_gpt::vocabulary)), ours = theirs;
    t.predict({{"tokens", std::span(c.tokens), {s.batch, s.time}}}, {"logits", std::span(theirs), {s.batch, s.time, case_gpt::vocabulary}});
    any.predict({{"tokens", std::span(c.tokens), {s.batch, s.time}}}, {"logits", std::span(ours), {s.batch, s.time, case_gpt::vocabulary}});
    CHECK(ours == theirs);
    std::vector<double> wrong(ours.size());
    CHECK(error_of([&] { any.predict(view(c), {"logits", std::span(wrong), {s.batch, s.time, case_gpt::vocabulary}}); }).says(fl::errc::model, "f32", "f64"));
    c.tokens[0] = 61;
    CHECK(error_of([&] { any.evaluate(view(c)); }).says(fl::errc::model, "is 61"));
  }
  CHECK(!fl::label_accuracy(w).applies());
  std::vector<float> none(1);
  CHECK(error_of([&] { any.predict(view(b), {"logit", std::span(none), {1}}); }).says(fl::errc::model, "no output 'logit'", "loss, logits"));
  CHECK(error_of([&] { fl::weights_model(model, std::string(fl::reference<double>::name), 1, reader, {10, 12}, outputs); }).code != fl::errc::ok);
  CHECK(error_of([&] { fl::weights_model(model, "", 1, reader, {10, 13}, outputs); }).says(fl::errc::model, "time is 13", "at most 12"));
}
