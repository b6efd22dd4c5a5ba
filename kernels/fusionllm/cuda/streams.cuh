// SPDX-License-Identifier: Apache-2.0
// Streams and events of the current GPU, owned.
#pragma once

#include <cstring>
#include <thread>

#include <fusionllm/core/clock.hpp>

#include "check.cuh"

namespace fusionllm::inline v0::detail {

class cuda_stream {
 public:
  cuda_stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream"); }
  ~cuda_stream() { cudaStreamDestroy(stream_); }
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What was in a stream when it was last recorded; at first nothing, which has run.
class cuda_event {
 public:
  cuda_event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "make an event"); }
  ~cuda_event() { cudaEventDestroy(event_); }
  cuda_event(const cuda_event&) = delete;
  cuda_event& operator=(const cuda_event&) = delete;

  void record(cudaStream_t s) { check(cudaEventRecord(event_, s), "record an event"); }
  /// What `s` gets from now on runs after it.
  void before(cudaStream_t s) const { check(cudaStreamWaitEvent(s, event_, 0), "order streams"); }
  bool reached() const {
    const cudaError_t found = cudaEventQuery(event_);
    if (found != cudaErrorNotReady) check(found, "finish its work");
    return found == cudaSuccess;
  }
  /// False if it takes longer than `limit`.
  bool wait(nanoseconds limit = 600 * second) const {
    const nanoseconds begin = machine_clock::read();
    for (int polls = 0; !reached(); ++polls) {
      if (machine_clock::read() - begin > limit) return false;
      if (polls > 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
      else std::this_thread::yield();
    }
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace fusionllm::inline v0::detail
