// SPDX-License-Identifier: Apache-2.0
// A consumer of fusionllm::cpu through fusionllm_add_trainer, without a CUDA compiler: its .cu file does not exist.
#include <cstdio>

#include <fusionllm/core/version.hpp>

static_assert(FUSIONLLM_WITH_CUDA == 0);

int main() { std::printf("wire version %u\n", fusionllm::wire_version); }
