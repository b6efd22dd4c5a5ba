// SPDX-License-Identifier: Apache-2.0
// How bytes cross between host and GPU while kernels run: pieces of pinned host memory, each with a twin on the GPU. A
// copy to the GPU goes from the caller's memory into the next piece, over the bus in a stream of its own, and within the
// GPU to its place, in the order of the kernels; a copy from the GPU the other way. So that no kernel waits for the bus,
// but for bytes that it needs, and no copy for kernels that do not concern it. A piece is used again when its copy is done.
#pragma once

#include <array>

#include "streams.cuh"

namespace fusionllm::inline v0::detail {

class staging_ring {
 public:
  static constexpr u64 piece_bytes = u64(4) << 20;
  static constexpr std::size_t pieces = 8;  ///< each way

  staging_ring() {
    check(cudaHostAlloc(&pinned_, pieces * piece_bytes, cudaHostAllocDefault), "pin host memory");
    check(cudaMalloc(&twin_, 2 * pieces * piece_bytes), "allocate memory for copies");
  }
  ~staging_ring() {
    cudaFreeHost(pinned_);
    cudaFree(twin_);
  }
  staging_ring(const staging_ring&) = delete;
  staging_ring& operator=(const staging_ring&) = delete;

  /// `to`, on the GPU, gets `from` in the order of `work`.
  void upload(void* to, const void* from, u64 bytes, cudaStream_t work) {
    for (u64 at = 0; at < bytes; at += piece_bytes) {
      const u64 n = bytes - at < piece_bytes ? bytes - at : piece_bytes;
      const std::size_t i = next_in_++ % pieces;
      if (!free_in_[i].wait()) fail(errc::timeout, "a copy to the GPU has not ended in ten minutes: see what holds it up");
      char *host = pinned_ + i * piece_bytes, *twin = twin_ + i * piece_bytes;
      std::memcpy(host, static_cast<const char*>(from) + at, n);
      check(cudaMemcpyAsync(twin, host, n, cudaMemcpyHostToDevice, in_.get()), "copy to the GPU");
      crossed_.record(in_.get());
      crossed_.before(work);
      check(cudaMemcpyAsync(static_cast<char*>(to) + at, twin, n, cudaMemcpyDeviceToDevice, work), "copy on the GPU");
      free_in_[i].record(work);
    }
  }

  /// `to`, pinned, has `from` when what out() holds has run.
  void download(void* to, const void* from, u64 bytes, cudaStream_t work) {
    for (u64 at = 0; at < bytes; at += piece_bytes) {
      const u64 n = bytes - at < piece_bytes ? bytes - at : piece_bytes;
      const std::size_t i = next_out_++ % pieces;
      char* twin = twin_ + (pieces + i) * piece_bytes;
      free_out_[i].before(work);  // the GPU waits, not the host
      check(cudaMemcpyAsync(twin, static_cast<const char*>(from) + at, n, cudaMemcpyDeviceToDevice, work),
            "copy on the GPU");
      crossed_.record(work);
      crossed_.before(out_.get());
      check(cudaMemcpyAsync(static_cast<char*>(to) + at, twin, n, cudaMemcpyDeviceToHost, out_.get()),
            "copy from the GPU");
      free_out_[i].record(out_.get());
    }
  }
  cudaStream_t out() const { return out_.get(); }

 private:
  char* pinned_ = nullptr;
  char* twin_ = nullptr;
  cuda_stream in_, out_;
  std::array<cuda_event, pieces> free_in_, free_out_;
  cuda_event crossed_;  // recorded again once the stream was told to wait for it: it waits for what was recorded then
  u64 next_in_ = 0, next_out_ = 0;
};

}  // namespace fusionllm::inline v0::detail
