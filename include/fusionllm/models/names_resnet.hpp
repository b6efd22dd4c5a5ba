// SPDX-License-Identifier: Apache-2.0
// Names of a ResNet's weights as torchvision has them: a model that calls its parts conv1, bn1, layer1.0.conv1, ...,
// layer1.0.downsample.0 and fc has the same names and layouts; of what batch norm counts, files may have more.
#pragma once

#include "names.hpp"

namespace fusionllm::inline v0 {

inline constexpr std::string_view resnet_ignored_names[] = {"*.num_batches_tracked"};

inline constexpr weight_names resnet_names{"", {}, resnet_ignored_names};

}  // namespace fusionllm::inline v0
