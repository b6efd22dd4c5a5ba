// SPDX-License-Identifier: Apache-2.0
// Products of fp32 matrices by cuBLASLt. A product's descriptors and algorithm are chosen once a shape and kept, so
// that a steady step neither allocates nor searches.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include <fusionllm/core/types.hpp>

#include "check.cuh"

namespace fusionllm::inline v0 {

/// D (m, n) = op(A) op(B) + bias or + D, in cuBLASLt's order: columns lie one after another, so that a row-major
/// (rows, columns) tensor is its (columns, rows) matrix. op(A) is (m, k), op(B) is (k, n).
struct product {
  i64 m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;    ///< D = D + ...
  bool bias = false;   ///< a number for each row of D
  u32 alignment = 16;  ///< of A, B and D in bytes: algorithms with wide loads need it
  auto key() const { return std::tuple(m, n, k, transpose_a, transpose_b, add, bias, alignment); }
  bool operator<(const product& o) const { return key() < o.key(); }
};

class matmul_engine {
 public:
  static constexpr std::size_t workspace_bytes = std::size_t(32) << 20;

  explicit matmul_engine(cudaStream_t stream) : stream_(stream) {
    check(cublasLtCreate(&handle_), "start");
    owned_handle_.reset(handle_);
    void* memory = nullptr;
    check(cudaMalloc(&memory, workspace_bytes), "allocate the workspace of products");
    workspace_.reset(memory);
  }

  void run(product p, const float* a, const float* b, float* d, const float* bias = nullptr) {
    if (p.m == 0 || p.n == 0 || p.k == 0) return;  // k is the number of rows where it can be 0: nothing is added
    p.bias = bias != nullptr;
    p.alignment = common_alignment(a, b, d);
    const auto at = plans_.find(p);
    plan& chosen = at != plans_.end() ? at->second : plans_.emplace(p, choose(p, bias)).first->second;
    if (bias) set(chosen.operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, "set the bias of a product");
    const float one = 1, keep = p.add ? 1.0f : 0.0f;
    check(cublasLtMatmul(handle_, chosen.operation.get(), &one, a, chosen.a.get(), b, chosen.b.get(), &keep, d,
                         chosen.d.get(), d, chosen.d.get(), &chosen.algorithm, workspace_.get(), workspace_bytes,
                         stream_),
          "multiply");
  }

 private:
  template <auto Destroy>
  struct destroyer {
    template <class X>
    void operator()(X* x) const {
      Destroy(x);
    }
  };
  using operation_ptr =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, destroyer<&cublasLtMatmulDescDestroy>>;
  using layout_ptr = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, destroyer<&cublasLtMatrixLayoutDestroy>>;
  using preference_ptr =
      std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, destroyer<&cublasLtMatmulPreferenceDestroy>>;

  struct plan {
    operation_ptr operation;
    layout_ptr a, b, d;
    cublasLtMatmulAlgo_t algorithm{};
  };

  static u32 common_alignment(const void* a, const void* b, const void* d) {
    const std::size_t bits = reinterpret_cast<std::size_t>(a) | reinterpret_cast<std::size_t>(b) |
                             reinterpret_cast<std::size_t>(d) | 256;
    return u32(bits & (~bits + 1));
  }
  template <class V>
  static void set(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t what, const V& value, const char* doing) {
    check(cublasLtMatmulDescSetAttribute(of, what, &value, sizeof value), doing);
  }
  template <class V>
  static void set(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t what, const V& value) {
    check(cublasLtMatmulPreferenceSetAttribute(of, what, &value, sizeof value), "prepare the choice of an algorithm");
  }
  static layout_ptr layout(i64 rows, i64 columns) {
    cublasLtMatrixLayout_t l = nullptr;
    check(cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, u64(rows), u64(columns), rows), "describe a matrix");
    return layout_ptr(l);
  }

  plan choose(const product& p, const float* bias) const {
    plan c;
    cublasLtMatmulDesc_t operation = nullptr;
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
    c.operation.reset(operation);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, "describe a product");
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, "describe a product");
    if (p.bias) {
      set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, "describe a product with a bias");
      set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, "set the bias of a product");
    }
    c.a = p.transpose_a ? layout(p.k, p.m) : layout(p.m, p.k);
    c.b = p.transpose_b ? layout(p.n, p.k) : layout(p.k, p.n);
    c.d = layout(p.m, p.n);
    cublasLtMatmulPreference_t raw = nullptr;
    check(cublasLtMatmulPreferenceCreate(&raw), "prepare the choice of an algorithm");
    const preference_ptr preference(raw);
    set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, u64(workspace_bytes));
    for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(raw, which, p.alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation, c.a.get(), c.b.get(), c.d.get(),
                                                                 c.d.get(), raw, 1, &found, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0)
      fail(errc::internal, "cuBLASLt has no algorithm for an fp32 product (", p.m, " x ", p.k, ") by (", p.k, " x ",
           p.n, ") aligned to ", p.alignment, " bytes: ", cublasLtGetStatusString(status),
           "; run this operator on the cpu device, or use another version of CUDA");
    c.algorithm = found.algo;
    return c;
  }

  cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, destroyer<&cublasLtDestroy>> owned_handle_;
  std::unique_ptr<void, destroyer<static_cast<cudaError_t (*)(void*)>(&cudaFree)>> workspace_;
  std::map<product, plan> plans_;
};

}  // namespace fusionllm::inline v0
