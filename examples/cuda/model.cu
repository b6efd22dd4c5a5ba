// SPDX-License-Identifier: Apache-2.0
// All that is needed for GPUs: the model and one line.
#include <fusionllm/cuda/device.cuh>

#include "model.hpp"

template const fusionllm::device_side& fusionllm::device_tables<byte_gpt, fusionllm::cuda>();
