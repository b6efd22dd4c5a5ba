// SPDX-License-Identifier: Apache-2.0
// A trainer of a network with batch norm: running statistics are saved, restored and used to predict.
#include <fusionllm/trainer/basic_trainer.hpp>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/models/resnet.hpp>
#include <fusionllm/schedule/schedulers.hpp>

#include "catch.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u64;

namespace {

struct small
    : fl::residual_network<fl::resnet_config{
          .blocks = {1, 1, 1, 1}, .classes = 5, .stem = fl::resnet_stem::cifar, .side = 16, .channels = 2, .width = 4}> {};

struct run {
  fl::basic_trainer t;
  std::vector<float> images = std::vector<float>(8 * 2 * 16 * 16);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(8);

  static fl::trainer_options options() {
    fl::trainer_options o;
    o.batch = 8;
    o.time = 1;
    o.micro_batches = 4;
    o.groups = 2;
    o.optimizer.learning_rate = 1e-2;
    return o;
  }
  run()
      : t(fl::bind_model<small, fl::devices<fl::cpu>, fl::schedulers<fl::best_single>, fl::built_in_compressors>(),
          options()) {}
  void draw(u64 step) {
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = 3 * fl::uniform(fl::random_word({1, step, 0, 0}, i));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(fl::random_word({2, step, 0, 0}, i) % 5);
  }
  double step() {
    draw(t.steps());
    return t.step({{"images", std::span(images), {8, 2, 16, 16}}, {"labels", std::span(labels), {8}}}).loss;
  }
  std::vector<float> statistic(const char* name) {
    const auto x = t.parameter(name);
    return {x.as<float>(), x.as<float>() + x.count()};
  }
  std::vector<float> predict(i64 rows) {
    std::vector<float> out(std::size_t(rows * 5));
    t.predict({{"images", std::span(images).first(std::size_t(rows * 512)), {rows, 2, 16, 16}}},
              {"logits", std::span(out), {rows, 5}});
    return out;
  }
};

}  // namespace

TEST_CASE("running statistics begin as 0 and 1, move, and are restored with the weights") {
  fusionllm_test::temporary_folder folder;
  const std::string path = folder / "state";
  run first, second;
  CHECK(first.statistic("bn1.running_mean") == std::vector<float>(4, 0.0f));
  CHECK(first.statistic("bn1.running_var") == std::vector<float>(4, 1.0f));
  for (int s = 0; s < 3; ++s) first.step();
  const auto mean = first.statistic("layer4.0.bn2.running_mean");
  CHECK(mean != std::vector<float>(32, 0.0f));
  first.t.save(path);
  second.t.load(path);
  CHECK(second.statistic("layer4.0.bn2.running_mean") == mean);
  CHECK(second.statistic("bn1.running_var") == first.statistic("bn1.running_var"));
  CHECK(second.step() == first.step());
  CHECK(second.statistic("layer4.0.bn2.running_mean") == first.statistic("layer4.0.bn2.running_mean"));
  first.draw(9);
  second.draw(9);
  CHECK(second.predict(8) == first.predict(8));
}

TEST_CASE("a prediction does not depend on the other samples, nor does predicting change anything") {
  run r;
  for (int s = 0; s < 3; ++s) r.step();
  const auto before = r.statistic("bn1.running_mean");
  r.draw(9);
  const auto all = r.predict(8), one = r.predict(1);
  for (std::size_t k = 0; k < 5; ++k) CHECK(one[k] == Approx(all[k]).epsilon(1e-4));
  CHECK(one[0] != one[1]);
  CHECK(r.statistic("bn1.running_mean") == before);
  CHECK(std::isfinite(r.t.evaluate({{"images", std::span(r.images), {8, 2, 16, 16}}, {"labels", std::span(r.labels), {8}}})));
}
