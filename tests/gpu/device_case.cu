// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cuda/device.cuh>

#include "case_gpt.hpp"

template const fusionllm::device_side& fusionllm::device_tables<fusionllm_test::case_gpt, fusionllm::cuda>();
template const fusionllm::device_side& fusionllm::device_tables<fusionllm_test::case_gpt, fusionllm::cuda_bf16>();
