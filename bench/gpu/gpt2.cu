// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cuda/device.cuh>

#include "models.hpp"

template const fusionllm::device_side& fusionllm::device_tables<bench::gpt2_small, fusionllm::cuda>();
