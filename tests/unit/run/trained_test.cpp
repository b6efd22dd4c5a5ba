// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/trained.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

// Peers ask for weights as long as they answer: their checkpoint is not somebody else's.
static_assert(std::is_constructible_v<fl::peers_model, fl::command_call&, fl::checkpoint_reader, fl::sizes, std::vector<fl::forward_output>>);
static_assert(!std::is_constructible_v<fl::peers_model, fl::command_call&, fl::checkpoint_reader&, fl::sizes, std::vector<fl::forward_output>>);

namespace {
struct line {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 1>(g, "x");
    return fl::mean_squared_error(x | fl::linear<1>.named("one"), x);
  }
};
}  // namespace

TEST_CASE("the checkpoint that was verified is the one that is used") {
  const fusionllm_test::temporary_folder folder;
  fl::trainer<line, fl::reference<double>> t({.batch = 1});
  t.parameter("one.weight").as<double>()[0] = 5;
  const fl::run_folder run(folder.path());
  run.checkpoints().prepare();
  t.save(run.checkpoints().file_of(3));
  const fl::program_options program;
  fl::command_call call{fl::trainer<line, fl::reference<double>>::binding(), {}, {}, program};
  CHECK(error_of([&] { fl::trained_checkpoint(call); }).says(fl::errc::usage, "--run"));
  call.config.run = folder.path();
  const fl::checkpoint_reader r = fl::trained_checkpoint(call);
  folder.write("checkpoints/step-0000000003.ckpt.new", "another");
  std::filesystem::rename(folder / "checkpoints/step-0000000003.ckpt.new", r.path());
  double weight = 0;
  r.read("one.weight", fl::dtype::f64, {2, {1, 1}}, std::as_writable_bytes(std::span(&weight, 1)));
  CHECK((weight == 5 && r.info().step == 0));
  call.options.checkpoint = r.path();
  CHECK(error_of([&] { fl::trained_checkpoint(call); }).says(fl::errc::checkpoint, r.path()));
}

TEST_CASE("a trained model is used with the sizes of its run, and not where that took place") {
  fusionllm_test::temporary_folder folder;
  fl::run_config c;
  c.time = 33, c.batch = 5, c.tokenizer = "words", c.scheduler = "equal_number";
  c.peers = 4, c.topology = "slow.json", c.emulate = true, c.use = "plan.json", c.bind = "0.0.0.0:0", c.broker = "there:1", c.run_id = "x";
  c.insecure_network = true, c.resume = true, c.run = "elsewhere";
  folder.write("config.json", fl::to_json(c));
  fl::run_config used;
  fl::apply_run_folder(folder.path(), used);
  CHECK((used.time == 33 && used.batch == 5 && used.tokenizer == "words" && used.scheduler == "equal_number"));
  CHECK((used.run == folder.path() && !used.resume));
  const fl::run_config none;
  CHECK((used.peers == none.peers && used.topology.empty() && !used.emulate && used.use.empty() && used.bind == none.bind));
  CHECK((used.broker == none.broker && used.run_id.empty() && !used.insecure_network));
  CHECK(error_of([&] { fl::apply_run_folder(folder.path() + "/none", used); }).says(fl::errc::checkpoint, "no run folder"));
}

TEST_CASE("a model is cut as training cuts a batch") {
  fl::run_config c;
  c.batch = 10, c.micro_batches = 4, c.time = 7;
  const fl::forward_output o = fl::whole_output(c, 3);
  CHECK((o.node == 3 && o.kind == fl::inference_kind::whole && o.bounds == fl::sizes{3, 7}));
}
