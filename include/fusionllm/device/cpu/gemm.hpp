// SPDX-License-Identifier: Apache-2.0
// oneDNN's sgemm on the calling thread alone. It takes plain layouts and any leading dimension, keeps nothing between
// calls, and calls no operator new; packing costs it a few percent against weights that were packed once.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "../../core/error.hpp"
#include "../../core/types.hpp"

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
extern "C" {
int omp_get_max_threads(void) noexcept;
void omp_set_num_threads(int) noexcept;
}
#endif

namespace fusionllm::inline v0::detail {

/// While it lives, oneDNN on this thread starts no other threads. The caller's own OpenMP setting comes back after it.
class one_thread {
 public:
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
  one_thread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~one_thread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
#else
  one_thread() : before_(1) {}
#endif
  one_thread(const one_thread&) = delete;
  one_thread& operator=(const one_thread&) = delete;

 private:
  int before_;
};

/// A matrix in memory: element (i, j) at data[i * stride + j], or at data[j * stride + i] if it is used transposed.
struct matrix {
  const float* data;
  i64 stride;
  char transposed = 'N';
};
constexpr matrix transpose(matrix a) { return {a.data, a.stride, a.transposed == 'N' ? 'T' : 'N'}; }

/// c (m, n), rows `c_stride` apart, = a (m, k) b (k, n) + (c if `add`).
inline void gemm(i64 m, i64 n, i64 k, matrix a, matrix b, float* c, i64 c_stride, bool add) {
  const one_thread guard;
  const auto status = dnnl_sgemm(a.transposed, b.transposed, m, n, k, 1.0f, a.data, a.stride, b.data, b.stride,
                                 add ? 1.0f : 0.0f, c, c_stride);
  if (status != dnnl_success)
    fail(errc::internal, "oneDNN refused a product of ", m, " x ", k, " and ", k, " x ", n, ", status ", int(status));
}

}  // namespace fusionllm::inline v0::detail
