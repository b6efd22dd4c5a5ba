// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for fork-join loops. Work is split by index alone, never by timing, so that a team of one
// size gives the same bits every time. The caller is member 0; a team of one starts no thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "types.hpp"

namespace fusionllm::inline v0 {

class thread_team {
 public:
  /// Errors: errc::resource when the system has no room for so many threads.
  explicit thread_team(int size = 1) : size_(size < 1 ? 1 : size) {
    try {
      for (int rank = 1; rank < size_; ++rank) threads_.emplace_back([this, rank] { serve(rank); });
    } catch (const std::system_error& e) {
      const std::size_t started = threads_.size();
      dismiss();
      fail(errc::resource, "thread ", started + 1, " of ", size_, " cannot be started: ", e.what(), ": use fewer threads");
    }
  }
  ~thread_team() { dismiss(); }
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  int size() const { return size_; }

  /// Calls f(rank, size) once a member and returns when all have. Not reentrant; f must not throw.
  template <class F>
  void run(F&& f) {
    if (size_ == 1) return void(f(0, 1));
    auto call = [](void* p, int rank, int size) { (*static_cast<std::remove_reference_t<F>*>(p))(rank, size); };
    {
      std::lock_guard lock(mutex_);
      job_ = call;
      argument_ = const_cast<void*>(static_cast<const void*>(&f));
      pending_.store(size_ - 1, std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    f(0, size_);
    for (int spin = 0; pending_.load(std::memory_order_acquire) != 0; ++spin)
      if (spin > 4000) std::this_thread::yield();
  }

  /// Splits [0, n) into contiguous parts, one a member, each a multiple of `grain` (but the last), and calls
  /// f(begin, end) on those that are not empty.
  template <class F>
  void split(i64 n, i64 grain, F&& f) {
    if (n <= grain || size_ == 1) {
      if (n > 0) f(i64(0), n);
      return;
    }
    const i64 blocks = (n + grain - 1) / grain;
    run([&](int rank, int size) {
      const i64 begin = blocks * rank / size * grain;
      i64 end = blocks * (rank + 1) / size * grain;
      if (end > n) end = n;
      if (begin < end) f(begin, end);
    });
  }

 private:
  void dismiss() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& t : threads_) t.join();
  }
  void serve(int rank) {
    u64 seen = 0;
    for (;;) {
      for (int spin = 0; spin < 4000 && generation_.load(std::memory_order_acquire) == seen; ++spin) {
      }
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || generation_.load(std::memory_order_relaxed) != seen; });
        if (stop_) return;
        seen = generation_.load(std::memory_order_relaxed);
      }
      job_(argument_, rank, size_);
      pending_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  const int size_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<u64> generation_{0};
  std::atomic<int> pending_{0};
  void (*job_)(void*, int, int) = nullptr;
  void* argument_ = nullptr;
  bool stop_ = false;
};

}  // namespace fusionllm::inline v0
