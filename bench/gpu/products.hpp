// SPDX-License-Identifier: Apache-2.0
// The rate of the library of products alone, and of memory, on the same GPU in the same run.
#pragma once

#include <span>

#include <fusionllm/cuda/product.hpp>
#include <fusionllm/device/cuda.hpp>

namespace bench {

/// Seconds that the products take one after another, the best of `repetitions`. The GPU must be cuda:0.
double seconds_of(fusionllm::cuda_context& gpu, std::span<const fusionllm::product> products, int repetitions);
const char* library_of_products();
/// Bytes a second that a copy on the GPU reads and writes.
double memory_rate(fusionllm::cuda_context& gpu);
/// Seconds of one selection of k among n floats.
double seconds_of_top_k(fusionllm::cuda_context& gpu, fusionllm::i64 n, fusionllm::i64 k, int repetitions);

}  // namespace bench
