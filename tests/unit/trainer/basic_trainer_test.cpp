// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/basic_trainer.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"
#include <fusionllm/device/cpu.hpp>
#include <fusionllm/schedule/schedulers.hpp>

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

const fl::model_binding& binding() {
  return fl::bind_model<case_gpt, fl::devices<fl::reference<float>, fl::reference<double>, fl::cpu>, fl::schedulers<fl::best_single>,
                        fl::built_in_compressors>();
}
fl::trainer_options options(const std::string& device = "reference") {
  fl::trainer_options o;
  o.device = device;
  o.batch = 10;
  o.time = case_gpt::time;
  o.micro_batches = 4;
  o.groups = 2;
  o.seed = 7;
  o.optimizer = lively_optimizer();
  return o;
}

// A trainer with its data.
struct run {
  fl::basic_trainer t;
  token_batch b{10, case_gpt::time};
  std::vector<double> losses;

  explicit run(const fl::trainer_options& o = options()) : t(binding(), o) {}
  fl::step_result step(i64 rows = 10) {
    b.fill(t.steps(), case_gpt::vocabulary, 3, 6);
    return t.step(spans(rows, b.time));
  }
  fl::batch_view spans(i64 rows, i64 time) {
    const std::size_t n = std::size_t(rows * time);
    inputs[0] = {"tokens", std::span(b.tokens).first(n), {rows, time}};
    inputs[1] = {"targets", std::span(b.targets).first(n), {rows, time}};
    return fl::batch_view(inputs);
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) losses.push_back(step().loss);
  }
  std::map<std::string, std::vector<float>> weights() {
    std::map<std::string, std::vector<float>> r;
    for (const auto& p : t.graph().params) {
      const auto x = t.parameter(p.path.view());
      r[std::string(p.path.view())].assign(x.as<float>(), x.as<float>() + x.count());
    }
    return r;
  }
  std::array<fl::input_span, 2> inputs;
};

}  // namespace

TEST_CASE("a trainer gives the bits of an engine of a distributed run") {
  run r;
  engine_group<case_gpt, fl::reference<float>> g(chain_plan(r.t.graph().size(), {{0}, {1}}), [] {
    group_options o;
    o.optimizer = lively_optimizer();
    return o;
  }());
  r.steps(5);
  g.train(5);
  CHECK(r.losses == g.losses);
  const auto expected = g.weights();
  for (const auto& [name, w] : r.weights()) CHECK(std::memcmp(w.data(), expected.at(name).data(), w.size() * 4) == 0);
  const auto last = r.step();
  CHECK(last.step == 6);
  CHECK(r.t.steps() == 6);
  CHECK(last.learning_rate == fl::learning_rate_at(lively_optimizer(), 5));
  CHECK(last.gradient_norm > 0);
  CHECK(!last.skipped);
}

TEST_CASE("a steady step allocates nothing, on any device") {
  for (const char* device : {"reference", "reference_f64", "cpu"}) {
    run r(options(device));
    for (int i = 0; i < 3; ++i) r.step();
    const long before = allocations();
    for (int i = 0; i < 4; ++i) r.step();
    const long made = allocations() - before;
    INFO(device);
    CHECK(made == 0);
  }
}

namespace {
/// The same infinity in step 5 of every run.
void harm(run& r, u64 until = 5) {
  r.t.observe([&r, until](int node, int micro_batch, bool backward, const fl::tensor_ref& t) {
    if (node == 5 && micro_batch == 3 && !backward && r.t.steps() >= 5 && r.t.steps() <= until)
      t.as<float>()[2] = std::numeric_limits<float>::infinity();
  });
}
}  // namespace

TEST_CASE("a step that is not finite is skipped with its reason; a run resumed around it is the run that was not stopped") {
  const temporary_folder folder;
  auto o = options();
  o.skipping.spike_factor = 100;
  run whole(o);
  harm(whole);
  whole.steps(5);
  const auto before = whole.weights();
  const auto bad = whole.step();
  CHECK(bad.skipped);
  CHECK(bad.reason.find("the activation of ") == 0);
  CHECK(bad.reason.find("micro-batch 3, stage 0 on peer 0 is not finite") != std::string::npos);
  CHECK(whole.weights() == before);
  whole.steps(14);
  for (int stop : {5, 6, 8}) {
    run first(o), second(o);
    harm(first);
    harm(second);
    for (int i = 0; i < stop; ++i) first.step();
    first.t.save(folder / "a");
    second.t.load(folder / "a");
    for (int i = stop; i < 20; ++i) second.step();
    CHECK(second.weights() == whole.weights());
    second.t.save(folder / "second");
    whole.t.save(folder / "whole");
    CHECK(folder.read("second") == folder.read("whole"));
  }
}

TEST_CASE("too many skipped steps in a row are an error with its own code, also when the run was resumed between them") {
  const temporary_folder folder;
  auto o = options();
  o.skipping.most_in_row = 3;
  run r(o), resumed(o);
  harm(r, 100);
  harm(resumed, 100);
  r.steps(7);
  r.t.save(folder / "a");
  const auto why = error_of([&] { r.step(); });
  CHECK(why.says(fl::errc::diverged, "3 steps in a row were skipped, the last of them step 8 because the activation of", "max_skipped"));
  resumed.t.load(folder / "a");
  CHECK(error_of([&] { resumed.step(); }).code == fl::errc::diverged);
}

TEST_CASE("after a divergence steps may go on: each is the same error until one is accepted") {
  auto o = options();
  o.skipping.most_in_row = 2;
  run r(o), other(o);
  harm(r, 7);
  r.steps(6);
  const auto before = r.weights();
  for (u64 done : {7, 8}) {
    CHECK(error_of([&] { r.step(); }).says(fl::errc::diverged, std::to_string(done - 5) + " steps in a row"));
    CHECK(r.t.steps() == done);
  }
  CHECK(r.weights() == before);
  CHECK_FALSE(r.step().skipped);
  harm(other, 7);
  other.steps(6);
  for (int i = 0; i < 2; ++i) error_of([&] { other.step(); });
  r.steps(1);
  other.steps(2);
  CHECK(r.weights() == other.weights());
}

TEST_CASE("an update that leaves an infinity in a weight ends a trainer until it loads a checkpoint") {
  const temporary_folder folder;
  auto o = options();
  run good(o);
  good.steps(2);
  good.t.save(folder / "good");
  good.steps(3);
  auto wild = o;
  wild.optimizer.learning_rate = 1e300;
  run r(wild);
  CHECK(error_of([&] { r.step(); }).says(fl::errc::numeric, "the update of step 0 leaves an infinity or NaN in wte.weight"));
  CHECK(error_of([&] { r.step(); }).says(fl::errc::numeric, "until a checkpoint is loaded: the update of step 0"));
  CHECK(error_of([&] { r.t.save(folder / "bad"); }).says(fl::errc::numeric, "until a checkpoint is loaded"));
  CHECK(error_of([&] { r.t.load(folder / "absent"); }).code == fl::errc::checkpoint);
  CHECK(error_of([&] { r.step(); }).code == fl::errc::numeric);
  CHECK(r.t.steps() == 0);
  r.t.load(folder / "good");
  CHECK(r.t.evaluate(r.spans(10, 12)) > 0);
  CHECK(error_of([&] { r.step(); }).says(fl::errc::numeric, "the update of step 2"));
  CHECK(error_of([&] { r.t.save(folder / "bad"); }).code == fl::errc::numeric);
  CHECK(folder.read("bad").empty());
}

TEST_CASE("recomputation changes no bit on any device") {
  for (const char* device : {"reference", "cpu"}) {
    std::vector<double> expected;
    for (auto policy : {fl::recompute_policy::none, fl::recompute_policy::block, fl::recompute_policy::selective}) {
      auto o = options(device);
      o.recompute = policy;
      run r(o);
      r.steps(6);
      if (expected.empty()) expected = r.losses;
      CHECK(r.losses == expected);
    }
  }
}

TEST_CASE("20 steps are 10, a file, and 10 more in another trainer") {
  const temporary_folder folder;
  run whole, first, second;
  whole.steps(20);
  first.steps(10);
  first.t.save(folder / "a");
  second.step();  // what it did before is forgotten
  second.t.load(folder / "a");
  CHECK(second.t.steps() == 10);
  second.steps(10);
  CHECK(std::equal(second.losses.begin(), second.losses.end(), whole.losses.begin() + 10));
  CHECK(second.weights() == whole.weights());
  second.t.save(folder / "b");
  whole.t.save(folder / "c");
  CHECK(folder.read("b") == folder.read("c"));
  run third;  // a state of step 0 and of the last step too
  third.t.save(folder / "zero");
  third.steps(3);
  third.t.load(folder / "zero");
  CHECK(third.t.steps() == 0);
  third.losses.clear();
  third.steps(2);
  CHECK(std::equal(third.losses.begin(), third.losses.end(), whole.losses.begin()));
}

TEST_CASE("a file that does not fit is an error and changes nothing") {
  const temporary_folder folder;
  run r, other(options("reference_f64"));
  r.steps(2);
  other.step();
  other.t.save(folder / "double");
  r.t.save(folder / "good");
  const auto before = r.weights();
  std::string damaged = folder.read("good");
  damaged[damaged.size() / 2] = char(damaged[damaged.size() / 2] ^ 1);
  folder.write("damaged", damaged);
  {
    fl::checkpoint_writer w(folder / "partly", {binding().fingerprint, 5});
    const auto& p = binding().graph.params[0];
    std::vector<float> ones(p.count(), 1.0f);
    w.add(std::string(p.path.view()), fl::dtype::f32, p.dims, std::as_bytes(std::span(ones)));
    w.finish();
  }
  for (const char* file : {"double", "damaged", "partly", "absent"}) {
    INFO(file);
    CHECK(error_of([&] { r.t.load(folder / file); }).code == fl::errc::checkpoint);
    CHECK(r.weights() == before);
    CHECK(r.t.steps() == 2);
  }
}

TEST_CASE("predictions are forward passes of any size, alike alone and in a batch") {
  run r;
  r.steps(3);
  r.b.fill(99, case_gpt::vocabulary);
  const auto logits = [&](i64 rows, i64 time, i64 first_row = 0) {
    std::vector<float> out(std::size_t(rows * time * case_gpt::vocabulary));
    const fl::input_span tokens{"tokens", std::span(r.b.tokens).subspan(std::size_t(first_row * r.b.time), std::size_t(rows * time)), {rows, time}};
    r.t.predict(fl::batch_view(std::span(&tokens, 1)), {"logits", std::span(out), {rows, time, case_gpt::vocabulary}});
    return out;
  };
  const auto all = logits(10, 12);
  for (i64 row : {0, 3, 9}) {
    const auto one = logits(1, 12, row);
    CHECK(std::equal(one.begin(), one.end(), all.begin() + row * 12 * case_gpt::vocabulary));
  }
  const auto prompt = logits(1, 5);  // causal: a shorter one has the same beginning
  CHECK(std::equal(prompt.begin(), prompt.end(), all.begin()));
  CHECK(logits(10, 12) == all);
  const auto before = r.weights();
  CHECK(r.t.evaluate(r.spans(10, 12)) == Approx(r.t.evaluate(r.spans(10, 12))));
  CHECK(r.weights() == before);
  CHECK(r.t.steps() == 3);
}

TEST_CASE("evaluation is the mean over the whole batch, however it is cut") {
  run r;
  r.b.fill(5, case_gpt::vocabulary, 3, 6);
  const double whole = r.t.evaluate(r.spans(10, 12));
  auto o = options();
  o.micro_batches = o.groups = 1;
  run once(o);
  once.b.fill(5, case_gpt::vocabulary, 3, 6);
  CHECK(once.t.evaluate(once.spans(10, 12)) == Approx(whole).epsilon(1e-6));
  CHECK(whole == Approx(std::log(61.0)).epsilon(0.1));  // nothing is learned yet
}

TEST_CASE("parameters, gradients and values are read by name") {
  run r;
  CHECK(error_of([&] { r.t.gradient("wte.weight"); }).says(fl::errc::model, "take a step first"));
  int forward = 0, backward = 0;
  r.t.observe([&](int node, int micro_batch, bool back, const fl::tensor_ref& t) {
    CHECK(node >= 0);
    CHECK(micro_batch < 4);
    CHECK(t.data != nullptr);
    (back ? backward : forward) += 1;
  });
  const auto result = r.step();
  CHECK(forward > 4 * 10);
  CHECK(backward > 4 * 10);
  r.t.observe({});
  const int seen = forward;
  double squares = 0;
  for (const auto& p : r.t.graph().params) {
    const auto g = r.t.gradient(p.path.view());
    CHECK(g.dims == p.dims);
    for (i64 i = 0; i < g.count(); ++i) squares += double(g.as<float>()[i]) * double(g.as<float>()[i]);
  }
  CHECK(std::sqrt(squares) == Approx(result.gradient_norm).epsilon(1e-6));
  r.step();
  CHECK(forward == seen);
  CHECK(error_of([&] { r.t.parameter("wte"); }).says(fl::errc::model, "wte"));
  CHECK(error_of([&] { r.t.gradient("nothing"); }).says(fl::errc::model, "nothing"));
}

TEST_CASE("batches of other sizes within the bounds, and what is beyond them") {
  run r;
  CHECK(r.step(7).step == 1);
  CHECK(r.step(1).step == 2);
  token_batch narrow(10, 12);
  CHECK(r.t.step(r.spans(10, 3)).step == 3);
  auto big = options();
  big.time = 13;
  CHECK(error_of([&] { run x(big); }).says(fl::errc::model, "13", "12"));
  for (auto change : {+[](fl::trainer_options& o) { o.batch = 0; }, +[](fl::trainer_options& o) { o.micro_batches = 0; }}) {
    auto o = options();
    change(o);
    CHECK(error_of([&] { run x(o); }).code == fl::errc::config);
  }
  auto o = options();
  o.groups = 9;
  CHECK(error_of([&] { run x(o); }).says(fl::errc::plan, "groups is 9"));
  CHECK(error_of([&] { run x(options("gpu")); }).says(fl::errc::config, "gpu", "reference"));
  std::vector<float> out(61);
  const fl::input_span tokens{"tokens", std::span(r.b.tokens).first(1), {1, 1}};
  CHECK(error_of([&] { r.t.predict(fl::batch_view(std::span(&tokens, 1)), {"logits", std::span(out), {61, 1, 1}}); }).says(fl::errc::model, "logits"));
  CHECK(error_of([&] { r.t.predict(fl::batch_view(std::span(&tokens, 1)), {"logit", std::span(out), {1, 1, 61}}); }).says(fl::errc::model, "logit"));
  CHECK(r.step().step == 4);
}

TEST_CASE("a token that the model has not is an error before anything is computed, and changes nothing") {
  run r;
  r.steps(2);
  const auto before = r.weights();
  for (auto* ids : {&r.b.tokens, &r.b.targets}) {
    const char* name = ids == &r.b.tokens ? "'tokens'" : "'targets'";
    const std::int32_t kept = std::exchange((*ids)[5], std::int32_t(case_gpt::vocabulary));
    CHECK(error_of([&] { r.t.step(r.spans(10, r.b.time)); }).says(fl::errc::model, "element 5 of input", name));
    CHECK(error_of([&] { r.t.evaluate(r.spans(10, r.b.time)); }).says(fl::errc::model, "element 5 of input", name));
    (*ids)[5] = kept;
  }
  CHECK(r.t.steps() == 2);
  CHECK(r.weights() == before);
  r.steps(1);
  run other;
  other.steps(3);
  CHECK(r.losses == other.losses);
}
