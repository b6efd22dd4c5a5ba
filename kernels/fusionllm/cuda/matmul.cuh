// SPDX-License-Identifier: Apache-2.0
// The engine of products: cuBLASLt's where the build has it (FUSIONLLM_WITH_CUBLASLT=1, which CMake sets), else our own.
#pragma once

#include <fusionllm/core/config.hpp>

#if FUSIONLLM_WITH_CUBLASLT
#include "matmul_cublaslt.cuh"
#else
#include "matmul_plain.cuh"
#endif
