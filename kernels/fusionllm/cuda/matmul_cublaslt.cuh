// SPDX-License-Identifier: Apache-2.0
// Products of matrices by cuBLASLt. A product's descriptors and algorithm are chosen once a shape and kept, so that a
// steady step neither allocates nor searches.
#pragma once

#include <map>
#include <memory>

#include <fusionllm/device/cuda.hpp>

#include "check_cublaslt.cuh"
#include "product.hpp"

namespace fusionllm::inline v0 {

class matmul_engine {
 public:
  static constexpr std::size_t workspace_bytes = std::size_t(32) << 20;
  static constexpr const char* library = "cuBLASLt";

  explicit matmul_engine(cudaStream_t stream, product_precision precision) : stream_(stream), precision_(precision) {
    check(cublasLtCreate(&handle_), "start");
    owned_handle_.reset(handle_);
    void* memory = nullptr;
    check(cudaMalloc(&memory, workspace_bytes), "allocate the workspace of products");
    workspace_.reset(memory);
  }

  void run(product p, const product_operands& x) {
    if (p.m == 0 || p.n == 0 || p.k == 0) return;  // k is the number of rows where it can be 0: nothing is added
    p.bias = x.bias != nullptr;
    p.keep = x.kept != nullptr;
    p.alignment = x.alignment();
    const auto at = plans_.find(p);
    plan& chosen = at != plans_.end() ? at->second : plans_.emplace(p, choose(p, x)).first->second;
    point(chosen.operation.get(), x);
    const float one = 1, kept = p.add ? 1.0f : 0.0f;
    check(cublasLtMatmul(handle_, chosen.operation.get(), &one, x.a, chosen.a.get(), x.b, chosen.b.get(), &kept, x.d,
                         chosen.d.get(), x.d, chosen.d.get(), &chosen.algorithm, workspace_.get(), workspace_bytes,
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
  using operation_ptr = std::unique_ptr<cublasLtMatmulDescOpaque_t, destroyer<&cublasLtMatmulDescDestroy>>;
  using layout_ptr = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, destroyer<&cublasLtMatrixLayoutDestroy>>;
  using preference_ptr =
      std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, destroyer<&cublasLtMatmulPreferenceDestroy>>;

  struct plan {
    operation_ptr operation;
    layout_ptr a, b, d;
    cublasLtMatmulAlgo_t algorithm{};
  };

  template <class V>
  static void set(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t what, const V& value) {
    check(cublasLtMatmulDescSetAttribute(of, what, &value, sizeof value), "describe a product");
  }
  template <class V>
  static void set(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t what, const V& value) {
    check(cublasLtMatmulPreferenceSetAttribute(of, what, &value, sizeof value), "prepare the choice of an algorithm");
  }
  static cudaDataType_t type_of(dtype t) {
    return t == dtype::bf16 ? CUDA_R_16BF : t == dtype::f16 ? CUDA_R_16F : CUDA_R_32F;
  }
  static layout_ptr layout(dtype type, i64 rows, i64 columns) {
    cublasLtMatrixLayout_t l = nullptr;
    check(cublasLtMatrixLayoutCreate(&l, type_of(type), u64(rows), u64(columns), rows), "describe a matrix");
    return layout_ptr(l);
  }
  static cublasLtEpilogue_t epilogue(const product& p) {
    if (p.gelu && p.keep) return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    if (p.gelu) return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
  static void point(cublasLtMatmulDesc_t operation, const product_operands& x) {
    if (x.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
    if (x.kept) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, x.kept);
  }

  plan choose(const product& p, const product_operands& x) const {
    plan c;
    cublasLtMatmulDesc_t operation = nullptr;
    const bool short_mantissas = p.in == dtype::f32 && precision_ == product_precision::tf32;
    check(cublasLtMatmulDescCreate(&operation, short_mantissas ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
          "describe a product");
    c.operation.reset(operation);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p));
    if (p.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.out));
    if (p.keep) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.m);
    point(operation, x);
    c.a = p.transpose_a ? layout(p.in, p.k, p.m) : layout(p.in, p.m, p.k);
    c.b = p.transpose_b ? layout(p.in, p.n, p.k) : layout(p.in, p.k, p.n);
    c.d = layout(p.out, p.m, p.n);
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
      fail(errc::internal, "cuBLASLt has no algorithm for a product of ", name_of(p.in), " (", p.m, " x ", p.k,
           ") by (", p.k, " x ", p.n, ") to ", name_of(p.out), " aligned to ", p.alignment, " bytes: ",
           cublasLtGetStatusString(status), "; run this operator on the cpu device, or use another version of CUDA");
    c.algorithm = found.algo;
    return c;
  }

  cudaStream_t stream_;
  product_precision precision_;
  cublasLtHandle_t handle_ = nullptr;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, destroyer<&cublasLtDestroy>> owned_handle_;
  std::unique_ptr<void, destroyer<static_cast<cudaError_t (*)(void*)>(&cudaFree)>> workspace_;
  std::map<product, plan> plans_;
};

}  // namespace fusionllm::inline v0
