// SPDX-License-Identifier: Apache-2.0
// What bench/gpu.sh measures: models at their published sizes, for g++ and for nvcc.
#pragma once

#include <fusionllm/models/gpt2.hpp>
#include <fusionllm/models/resnet.hpp>

namespace bench {

namespace fl = fusionllm;

struct gpt2_small : fl::gpt2<fl::gpt2_size::small> {};
struct resnet101 : fl::resnet<101> {};

}  // namespace bench
