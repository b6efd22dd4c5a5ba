// SPDX-License-Identifier: Apache-2.0
// Statuses of CUDA as exceptions: what was being done, what CUDA said, what to do.
#pragma once

#include <cuda_runtime_api.h>

#include <fusionllm/core/error.hpp>

namespace fusionllm::inline v0 {

namespace detail {

inline const char* advice(cudaError_t found) {
  switch (found) {
    case cudaErrorMemoryAllocation: return "give this peer fewer operators or smaller micro-batches";
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return "choose a GPU that `nvidia-smi -L` lists, or run this peer on the cpu device";
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
      return "install an NVIDIA driver for this version of CUDA, or run this peer on the cpu device";
    case cudaErrorNoKernelImageForDevice: return "compile with CMAKE_CUDA_ARCHITECTURES naming this GPU's";
    default: return "it may be an earlier kernel's fault: compute-sanitizer names the kernel";
  }
}

inline bool machine_lacks(cudaError_t e) {
  return e == cudaErrorMemoryAllocation || e == cudaErrorNoDevice || e == cudaErrorInvalidDevice ||
         e == cudaErrorInsufficientDriver || e == cudaErrorInitializationError || e == cudaErrorNoKernelImageForDevice;
}

}  // namespace detail

/// Throws errc::resource or errc::internal unless the call succeeded.
inline void check(cudaError_t found, const char* doing) {
  if (found == cudaSuccess) return;
  fail(detail::machine_lacks(found) ? errc::resource : errc::internal, "CUDA could not ", doing, ": ",
       cudaGetErrorString(found), " (", cudaGetErrorName(found), "); ", detail::advice(found));
}

}  // namespace fusionllm::inline v0
