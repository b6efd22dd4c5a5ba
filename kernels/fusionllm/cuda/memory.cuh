// SPDX-License-Identifier: Apache-2.0
// A GPU's memory: allocations in the order of its stream, from a pool that keeps what is given back, pinned memory for
// results, copies through the staging ring, and tickets made of events. Whoever uses it makes the GPU the calling
// thread's first.
#pragma once

#include <vector>

#include "staging.cuh"

namespace fusionllm::inline v0::detail {

class gpu_memory {
 public:
  explicit gpu_memory(int ordinal) {
    int pools = 0;
    check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, ordinal), "ask for the GPU's properties");
    pooled_ = pools != 0;
    if (!pooled_) return;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;  // what CUDA calls memory that stays where it is
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    check(cudaMemPoolCreate(&pool_, &properties), "make a memory pool");
    u64 keep = ~u64(0);
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "set up a memory pool");
  }
  ~gpu_memory() {
    cudaStreamSynchronize(work_.get());
    if (pool_) cudaMemPoolDestroy(pool_);
  }
  gpu_memory(const gpu_memory&) = delete;
  gpu_memory& operator=(const gpu_memory&) = delete;

  cudaStream_t work() const { return work_.get(); }

  void* allocate(u64 bytes) {
    void* p = nullptr;
    bytes = bytes ? bytes : 1;
    check(pooled_ ? cudaMallocFromPoolAsync(&p, bytes, pool_, work_.get()) : cudaMalloc(&p, bytes), "allocate memory");
    zero(p, bytes);
    return p;
  }
  void release(void* p) noexcept {
    if (p) pooled_ ? cudaFreeAsync(p, work_.get()) : cudaFree(p);
  }
  void* allocate_shared(u64 bytes) {
    void* p = nullptr;
    check(cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocPortable), "pin host memory");
    std::memset(p, 0, bytes);
    return p;
  }
  void release_shared(void* p) noexcept {
    cudaStreamSynchronize(work_.get());
    cudaStreamSynchronize(staging_.out());
    cudaFreeHost(p);
  }

  void upload(void* to, const void* from, u64 bytes) { staging_.upload(to, from, bytes, work_.get()); }
  void download(void* to, const void* from, u64 bytes) {
    staging_.download(to, from, bytes, work_.get());
  }
  void copy(void* to, const void* from, u64 bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, work_.get()), "copy on the GPU");
  }
  void zero(void* to, u64 bytes) { check(cudaMemsetAsync(to, 0, bytes, work_.get()), "clear memory"); }

  /// An older ticket of the same events is reached no later than a newer one.
  u64 mark() {
    ticket& t = tickets_[next_ % tickets_.size()];
    t.work.record(work_.get());
    t.out.record(staging_.out());
    return next_++;
  }
  bool reached(u64 n) const { return at(n).work.reached() && at(n).out.reached(); }
  bool wait(u64 n, nanoseconds limit) const { return at(n).work.wait(limit) && at(n).out.wait(limit); }

 private:
  struct ticket {
    cuda_event work, out;
  };
  const ticket& at(u64 n) const { return tickets_[n % tickets_.size()]; }

  bool pooled_ = false;
  cudaMemPool_t pool_ = nullptr;
  cuda_stream work_;
  staging_ring staging_;
  std::array<ticket, 32> tickets_;
  u64 next_ = 0;
};

}  // namespace fusionllm::inline v0::detail
