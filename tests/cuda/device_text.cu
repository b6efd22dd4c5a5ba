// SPDX-License-Identifier: Apache-2.0
// The tables of the models that have every operator of language models.
#include <fusionllm/cuda/device.cuh>

#include "text_model.hpp"

template const fusionllm::device_side& fusionllm::device_tables<seam::text_model, fusionllm::cuda>();
template const fusionllm::device_side& fusionllm::device_tables<seam::llama_like, fusionllm::cuda>();
template const fusionllm::device_side& fusionllm::device_tables<seam::wide_heads, fusionllm::cuda>();
