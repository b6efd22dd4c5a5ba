// SPDX-License-Identifier: Apache-2.0
// Statuses of cuBLASLt as exceptions.
#pragma once

#include <cublasLt.h>

#include "check.cuh"

namespace fusionllm::inline v0 {

inline void check(cublasStatus_t found, const char* doing) {
  if (found == CUBLAS_STATUS_SUCCESS) return;
  const bool lacks = found == CUBLAS_STATUS_ALLOC_FAILED || found == CUBLAS_STATUS_NOT_INITIALIZED ||
                     found == CUBLAS_STATUS_ARCH_MISMATCH;
  fail(lacks ? errc::resource : errc::internal, "cuBLASLt could not ", doing, ": ", cublasLtGetStatusString(found),
       " (", cublasLtGetStatusName(found), "); ",
       lacks ? "check the driver and the GPU's free memory (nvidia-smi)"
             : "CUBLASLT_LOG_LEVEL=2 in the environment makes it say more");
}

}  // namespace fusionllm::inline v0
