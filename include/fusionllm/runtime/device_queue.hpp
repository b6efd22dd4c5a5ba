// SPDX-License-Identifier: Apache-2.0
// An asynchronous device: work is submitted and its completion comes back on the reactor, so that the protocol's thread
// never computes. One piece of work runs at a time. In emulation a completion is held back until the modelled time.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "../core/clock.hpp"
#include "../transport/reactor.hpp"

namespace fusionllm::inline v0 {

/// What a piece of work took: on this machine, and with the emulated device's hold. `failure` is what it threw.
struct completion {
  nanoseconds measured = 0;
  nanoseconds elapsed = 0;
  std::exception_ptr failure;
};

class device_queue {
 public:
  using work = callback<void()>;
  using done = callback<void(const completion&)>;
  virtual ~device_queue() = default;
  /// Runs `w`, then calls `d` on the reactor, not before `modelled` has passed since now (0: as soon as it is done).
  /// Not while an earlier one is under way.
  virtual void submit(work w, nanoseconds modelled, done d) = 0;
  /// Returns when no work runs. The completion of what was under way is never called: whoever submits and goes away
  /// calls this first.
  virtual void drain() = 0;
};

/// A worker thread beside a reactor of real time.
class worker_queue : public device_queue {
 public:
  explicit worker_queue(reactor& loop) : loop_(loop), thread_([this] { serve(); }) {}
  ~worker_queue() override {
    drain();
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void submit(work w, nanoseconds modelled, done d) override {
    {
      std::lock_guard lock(mutex_);
      work_ = std::move(w);
      done_ = std::move(d);
      modelled_ = modelled;
      submitted_ = loop_.now();
      full_ = true;
    }
    wake_.notify_one();
  }
  void drain() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !full_; });
    lifetime_ = std::make_shared<int>();  // a completion that was posted finds the old one gone
    loop_.cancel(std::exchange(held_, {}));
    done_.reset();
  }

 private:
  void serve() {
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return full_ || stop_; });
      if (stop_) return;
      lock.unlock();
      const nanoseconds begin = machine_clock::read();
      completion c;
      try {
        work_();
      } catch (...) {
        c.failure = std::current_exception();
      }
      work_.reset();
      c.measured = machine_clock::read() - begin;
      result_ = std::move(c);
      lock.lock();
      full_ = false;
      loop_.post([this, alive = std::weak_ptr<int>(lifetime_)] {
        if (!alive.expired()) finish();
      });
      idle_.notify_one();
    }
  }

  // On the reactor.
  void finish() {
    const nanoseconds end = submitted_ + modelled_;
    if (modelled_ > 0 && loop_.now() < end) held_ = loop_.at(end, [this] { report(); });
    else report();
  }
  void report() {
    held_ = {};
    done d = std::move(done_);
    completion c = std::move(result_);
    c.elapsed = loop_.now() - submitted_;
    d(c);
  }

  reactor& loop_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::shared_ptr<int> lifetime_ = std::make_shared<int>();
  work work_;
  done done_;
  completion result_;
  nanoseconds modelled_ = 0;
  nanoseconds submitted_ = 0;
  timer_id held_;
  bool full_ = false;  ///< work waits or runs
  bool stop_ = false;
  std::thread thread_;
};

/// Computes at once, on the caller's thread, and lets the modelled time pass on the reactor's clock: for virtual time,
/// and for a trainer that runs wholly inside its caller.
class inline_queue : public device_queue {
 public:
  explicit inline_queue(reactor& loop) : loop_(loop) {}
  ~inline_queue() override { loop_.cancel(held_); }
  void submit(work w, nanoseconds modelled, done d) override {
    const nanoseconds begin = machine_clock::read();
    completion c;
    try {
      w();
    } catch (...) {
      c.failure = std::current_exception();
    }
    c.measured = machine_clock::read() - begin;
    c.elapsed = modelled;
    done_ = std::move(d);
    result_ = std::move(c);
    held_ = loop_.at(loop_.now() + modelled, [this] {
      held_ = {};
      done report = std::move(done_);
      const completion r = std::move(result_);
      report(r);
    });
  }
  void drain() override {
    loop_.cancel(std::exchange(held_, {}));
    done_.reset();
  }

 private:
  reactor& loop_;
  done done_;
  completion result_;
  timer_id held_;
};

}  // namespace fusionllm::inline v0
