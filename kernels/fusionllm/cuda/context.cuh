// SPDX-License-Identifier: Apache-2.0
// One GPU of one peer: a stream, cuBLASLt's handle and plans, and tickets made of events.
#pragma once

#include <array>
#include <string>
#include <thread>

#include <fusionllm/core/clock.hpp>
#include <fusionllm/device/cuda.hpp>

#include "matmul.cuh"
#include "team.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// A stream and its events, made before and destroyed after what runs in it.
struct cuda_stream {
  static constexpr std::size_t events = 64;
  cudaStream_t stream = nullptr;
  std::array<cudaEvent_t, events> ring{};

  explicit cuda_stream(int ordinal) {
    check(cudaSetDevice(ordinal), "use the GPU");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    for (auto& e : ring) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "make an event");
  }
  ~cuda_stream() {
    for (auto e : ring)
      if (e) cudaEventDestroy(e);
    if (stream) cudaStreamDestroy(stream);
  }
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
};

}  // namespace detail

struct cuda::context final : cuda_context {
  explicit context(int ordinal) : ordinal_(ordinal), events_(ordinal), matmul(events_.stream) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "ask for the GPU's properties");
    description_ = "cuda:" + std::to_string(ordinal) + " (" + properties.name + ")";
    blocks_ = u32(properties.multiProcessorCount) * u32(properties.maxThreadsPerMultiProcessor) / block_size;
  }

  /// Makes this GPU the calling thread's, and returns the stream for what is launched next.
  cudaStream_t stream() const {
    check(cudaSetDevice(ordinal_), "use the GPU");
    return events_.stream;
  }
  /// Blocks that the GPU holds at once: more bring nothing.
  u32 blocks() const { return blocks_; }

  void* allocate(u64 bytes) override {
    void* memory = nullptr;
    check((stream(), cudaMalloc(&memory, bytes ? bytes : 1)), "allocate memory");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  void upload(void* to, const void* from, u64 bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "copy to the GPU");
  }
  void download(void* to, const void* from, u64 bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "copy from the GPU");
  }
  void zero(void* to, u64 bytes) override { check(cudaMemsetAsync(to, 0, bytes, stream()), "clear memory"); }

  u64 mark() override {
    const u64 ticket = next_++;  // an older ticket of the same event is reached no later than this one
    check(cudaEventRecord(event(ticket), stream()), "record an event");
    return ticket;
  }
  bool reached(u64 ticket) override {
    const cudaError_t found = cudaEventQuery(event(ticket));
    if (found != cudaErrorNotReady) check(found, "finish its work");
    return found == cudaSuccess;
  }
  void wait(u64 ticket, nanoseconds limit) override {
    const nanoseconds begin = machine_clock::read();
    for (int polls = 0; !reached(ticket); ++polls) {
      if (machine_clock::read() - begin > limit)
        fail(errc::timeout, description_, " did not finish its work within ", limit / millisecond,
             " ms; raise the limit if its micro-batches take longer, else look for errors with nvidia-smi and dmesg");
      if (polls > 1000) std::this_thread::sleep_for(std::chrono::microseconds(50));
      else std::this_thread::yield();
    }
  }

  void top_k(const float* x, i64 n, i64 k, u32* positions, float* values, u32* non_finite, void* workspace) override;
  u64 top_k_workspace(i64 n, i64 k) override;
  std::string_view description() const override { return description_; }

 private:
  cudaEvent_t event(u64 ticket) const { return events_.ring[ticket % detail::cuda_stream::events]; }

  int ordinal_;
  u32 blocks_ = 1;
  u64 next_ = 0;
  std::string description_;
  detail::cuda_stream events_;

 public:
  matmul_engine matmul;
};

}  // namespace fusionllm::inline v0
