// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cuda/device.cuh>

#include "models.hpp"

template const fusionllm::device_side& fusionllm::device_tables<bench::resnet101, fusionllm::cuda>();
