// SPDX-License-Identifier: Apache-2.0
// All that a user writes for the GPU: the model and one line.
#include <fusionllm/cuda/device.cuh>

#include "model.hpp"

template const fusionllm::device_side& fusionllm::device_tables<seam::model, fusionllm::cuda>();
