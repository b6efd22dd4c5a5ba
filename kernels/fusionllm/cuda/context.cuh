// SPDX-License-Identifier: Apache-2.0
// One GPU of one peer: its memory and streams (memory.cuh), products (matmul.cuh), compression (packing.hpp), and what
// kernels that call a library keep between calls.
//
// A kernel that needs a library's handle, its plans or scratch of its own makes a class of them, whose constructor takes
// the context, and asks for it: `c.part<convolutions>()`. It is made at first use and lives as long as the context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fusionllm/device/cuda.hpp>

#include "matmul.cuh"
#include "memory.cuh"
#include "team.hpp"

namespace fusionllm::inline v0 {

struct cuda::context final : cuda_context {
  explicit context(int ordinal, product_precision products = product_precision::f32)
      : ordinal_(on(ordinal)), memory_(ordinal), matmul(memory_.work(), products) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "ask for the GPU's properties");
    description_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
    blocks_ = u32(properties.multiProcessorCount) * u32(properties.maxThreadsPerMultiProcessor) / block_size;
    capability_ = properties.major * 10 + properties.minor;
  }
  ~context() override {
    cudaSetDevice(ordinal_);
    cudaStreamSynchronize(memory_.work());
  }

  /// Makes this GPU the calling thread's, and returns the stream for what is launched next.
  cudaStream_t stream() const {
    on(ordinal_);
    return memory_.work();
  }
  /// Blocks that the GPU holds at once: more bring nothing.
  u32 blocks() const { return blocks_; }
  /// E.g. 90 for compute capability 9.0.
  int capability() const { return capability_; }
  /// The X of this context: X(context&), once.
  template <class X>
  X& part() {
    for (const auto& p : parts_)
      if (p.of == &part_of<X>) return *static_cast<X*>(p.object.get());
    parts_.push_back({&part_of<X>, {new X(*this), [](void* x) { delete static_cast<X*>(x); }}});
    return *static_cast<X*>(parts_.back().object.get());
  }

  void* allocate(u64 bytes) override { return stream(), memory_.allocate(bytes); }
  void release(void* p) noexcept override { cudaSetDevice(ordinal_), memory_.release(p); }
  void* allocate_shared(u64 bytes) override { return stream(), memory_.allocate_shared(bytes); }
  void release_shared(void* p) noexcept override { cudaSetDevice(ordinal_), memory_.release_shared(p); }
  void upload(void* to, const void* from, u64 bytes) override { stream(), memory_.upload(to, from, bytes); }
  void download(void* to, const void* from, u64 bytes) override { stream(), memory_.download(to, from, bytes); }
  void read(void* to, const void* from, u64 bytes) override {
    settle();
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
  }
  void copy(void* to, const void* from, u64 bytes) override { stream(), memory_.copy(to, from, bytes); }
  void zero(void* to, u64 bytes) override { stream(), memory_.zero(to, bytes); }

  u64 mark() override { return stream(), memory_.mark(); }
  bool reached(u64 ticket) override { return memory_.reached(ticket); }
  void wait(u64 ticket, nanoseconds limit) override {
    if (!memory_.wait(ticket, limit))
      fail(errc::timeout, description_, " did not finish its work within ", limit / millisecond,
           " ms; raise the limit if its micro-batches take longer, else look for errors with nvidia-smi and dmesg");
  }

  device_packing* packing() override;
  void top_k(const float* x, i64 n, i64 k, u32* positions, float* values, u32* non_finite, void* workspace) override;
  u64 top_k_workspace(i64 n, i64 k) override;
  std::string_view description() const override { return description_; }

 private:
  static int on(int ordinal) {
    check(cudaSetDevice(ordinal), "use the GPU");
    return ordinal;
  }
  template <class X>
  static inline char part_of = 0;  // its address is X's name
  struct kept_part {
    const char* of;
    std::unique_ptr<void, void (*)(void*)> object;
  };

  int ordinal_;
  u32 blocks_ = 1;
  int capability_ = 0;
  std::string description_;
  detail::gpu_memory memory_;

 public:
  matmul_engine matmul;

 private:
  std::vector<kept_part> parts_;
};

}  // namespace fusionllm::inline v0
