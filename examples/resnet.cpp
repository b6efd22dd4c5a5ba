// SPDX-License-Identifier: Apache-2.0
// Residual networks on pictures of 32 x 32: Fashion-MNIST (padded) and CIFAR-10, or 10 folders of PNG and JPEG files.
//
//   resnet train    --data fashion-mnist/ --run folder --steps 938
//   resnet local    --data fashion-mnist/ --run folder --steps 938 --peers 2
//   resnet evaluate --data fashion-mnist/ --run folder
// ctest: graph
// ctest: plan --topology @SOURCE@/examples/topologies/demo.json --model 101
// ctest: train --data @DATA@/fashion-mnist --steps 2 --batch 8 --validation_batches 1 --run @WORK@/run --overwrite
#include <fusionllm/linked.hpp>
#include <fusionllm/models/resnet.hpp>
#include <fusionllm/trainer/images.hpp>

namespace fl = fusionllm;

template <int Depth>
constexpr auto binding = &fl::linked_trainer<fl::resnet<Depth, 10, fl::resnet_stem::cifar>>::binding;

int main(int argc, char** argv) {
  fl::run_config defaults;
  defaults.batch = 128;
  defaults.time = 1;
  defaults.optimizer = "sgd";
  defaults.learning_rate = 0.1;
  defaults.min_learning_rate = 0;
  defaults.weight_decay = 5e-4;
  defaults.clip = 0;
  defaults.threads = 2;
  const auto pictures = [](const fl::run_config& c) { return fl::images_from(c, {.classes = 10, .augment = {.padding = 2, .flip = true}}); };
  return fl::run_linked({{"18", binding<18>}, {"50", binding<50>}, {"101", binding<101>}}, argc, argv,
                        {.defaults = defaults, .make_data = pictures});
}
