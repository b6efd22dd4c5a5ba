// SPDX-License-Identifier: Apache-2.0
// Whole runs on a GPU: training as fl::reference trains, checkpoints that both read, and pipelines of GPU and CPU peers over
// the in-process transport.
#include <fusionllm/device/cuda.hpp>

#include <cmath>
#include <cstdio>
#include <string>

#include <fusionllm/trainer/basic_trainer.hpp>

#include "gpu_memory.hpp"
#include "virtual_cluster.hpp"

namespace fl = fusionllm;
using fusionllm_test::case_gpt;

namespace {

using all_devices = fl::devices<fl::reference<float>, fl::cuda, fl::cuda_tf32, fl::cuda_bf16>;

const fl::model_binding& binding() {
  return fl::bind_model<case_gpt, all_devices, fusionllm_test::even_stages, fl::built_in_compressors>();
}
void need_gpu() { seam::gpu_of(fl::device_tables<case_gpt, fl::cuda>()); }

struct lesson {
  fusionllm_test::token_batch batch{10, case_gpt::time};
  fl::basic_trainer trainer;
  explicit lesson(const char* device)
      : trainer(binding(), {.device = device, .batch = 10, .time = case_gpt::time, .micro_batches = 4, .groups = 2, .seed = 7,
                            .optimizer = fusionllm_test::lively_optimizer()}) {}
  double train(int steps) {
    double loss = 0;
    for (int i = 0; i < steps; ++i) {
      batch.fill(trainer.steps(), case_gpt::vocabulary);
      loss = trainer.step({{"tokens", std::span<const std::int32_t>(batch.tokens), {10, case_gpt::time}},
                           {"targets", std::span<const std::int32_t>(batch.targets), {10, case_gpt::time}}})
                 .loss;
    }
    return loss;
  }
};

double last_loss(const char* codec, std::initializer_list<const char*> devices) {
  fusionllm_test::case_binding_in_use() = &binding();
  fl::cluster_settings s = fusionllm_test::small_run(int(devices.size()));
  s.codec = codec;
  fusionllm_test::virtual_cluster c(s);
  fl::u32 rank = 0;
  for (const char* d : devices) c.join(rank++, "", d);
  REQUIRE(c.run());
  CHECK(c.why.code() == fl::errc::ok);
  REQUIRE(!c.steps.empty());
  return c.steps.back().loss;
}

}  // namespace

TEST_CASE("GPU: training as on the CPU, in fp32, with short products, in bf16", "[gpu]") {
  need_gpu();
  lesson plain("reference");
  const double expected = plain.train(20);
  for (const auto& [device, bound] : {std::pair{"cuda:0", 1e-3}, {"cuda_tf32", 2e-2}, {"cuda_bf16", 5e-2}}) {
    INFO(device);
    lesson there(device);
    const double found = there.train(20);
    INFO("loss " << found << ", expected " << expected);
    CHECK(std::abs(found - expected) <= bound * expected);
  }
}

TEST_CASE("GPU: checkpoints are the CPU's, both ways, and go on as if nothing had been", "[gpu]") {
  need_gpu();
  const std::string path = fusionllm_test::environment("TMPDIR", "/tmp") + "/fusionllm_gpu_test.ckpt";
  lesson there("cuda");
  there.train(5);
  there.trainer.save(path);
  lesson again("cuda"), plain("reference");
  again.trainer.load(path);
  plain.trainer.load(path);
  const double expected = there.train(5);
  CHECK(again.train(5) == expected);
  CHECK(std::abs(plain.train(5) - expected) <= 1e-3 * expected);
  plain.trainer.save(path);
  again.trainer.load(path);
  CHECK(again.trainer.steps() == 10);
  std::remove(path.c_str());
}

TEST_CASE("GPU: pipelines of GPU and CPU peers", "[gpu]") {
  need_gpu();
  for (const char* codec : {"none", "ada_top_k", "half_precision"}) {
    INFO(codec);
    const double expected = last_loss(codec, {"reference", "reference", "reference"});
    CHECK(std::abs(last_loss(codec, {"cuda:0", "reference", "cuda:0"}) - expected) <= 1e-2 * expected);
    CHECK(std::abs(last_loss(codec, {"reference", "cuda:0", "reference"}) - expected) <= 1e-2 * expected);
    CHECK(std::abs(last_loss(codec, {"cuda:0", "cuda:0", "cuda:0"}) - expected) <= 1e-2 * expected);
  }
}
