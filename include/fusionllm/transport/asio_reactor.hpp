// SPDX-License-Identifier: Apache-2.0
// Real time and sockets: an Asio io_context that one thread runs. Timers live in the same queue as those of virtual
// time, behind one Asio timer; only post() and stop() may come from other threads.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <mutex>
#include <vector>

#include "timer_queue.hpp"

namespace fusionllm::inline v0 {

class asio_reactor final : public reactor {
 public:
  asio_reactor() : io_(1), work_(io_.get_executor()), wake_(io_) {}
  ~asio_reactor() override {
    timers_.clear();
    const std::vector<task> doomed = std::exchange(posted_, {});
  }
  asio_reactor(const asio_reactor&) = delete;
  asio_reactor& operator=(const asio_reactor&) = delete;

  asio::io_context& context() { return io_; }

  nanoseconds now() const override { return machine_clock::read(); }
  timer_id at(nanoseconds when, task t) override {
    const timer_id id = timers_.add(when, std::move(t));
    arm();
    return id;
  }
  bool cancel(timer_id id) override { return timers_.cancel(id); }
  void post(task t) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(t));
    if (std::exchange(posting_, true)) return;
    asio::post(io_, [this] { run_posted(); });
  }
  bool run_one(nanoseconds deadline) override {
    if (io_.stopped()) io_.restart();
    return deadline == forever ? io_.run_one() != 0 : io_.run_one_until(instant(deadline)) != 0;
  }
  void run() override {
    while (!stopped_.load(std::memory_order_acquire)) run_one(forever);
    stopped_.store(false, std::memory_order_relaxed);
  }
  void stop() override {
    stopped_.store(true, std::memory_order_release);
    asio::post(io_, [] {});
  }

 private:
  static std::chrono::steady_clock::time_point instant(nanoseconds t) {
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::nanoseconds(t)));
  }
  /// One task a turn, so that one which throws loses no other.
  void run_posted() {
    task t;
    {
      const std::lock_guard lock(mutex_);
      t = std::move(posted_[first_++]);
      if (first_ == posted_.size()) {
        posted_.clear();
        first_ = 0;
        posting_ = false;
      } else {
        asio::post(io_, [this] { run_posted(); });
      }
    }
    t();
  }
  void arm() {
    const nanoseconds next = timers_.next();
    if (next == forever || (armed_ && armed_for_ <= next)) return;
    armed_ = true;
    armed_for_ = next;
    wake_.expires_at(instant(next));
    wake_.async_wait([this](const asio::error_code& failed) {
      if (failed) return;
      armed_ = false;
      fire();
    });
  }
  void fire() {
    if (timers_.next() > now()) return arm();
    task t = timers_.pop();
    if (timers_.next() <= now()) asio::post(io_, [this] { fire(); });
    else arm();
    t();
  }

  timer_queue timers_;
  std::mutex mutex_;
  std::vector<task> posted_;
  std::size_t first_ = 0;
  bool posting_ = false;
  std::atomic<bool> stopped_{false};
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer wake_;
  bool armed_ = false;
  nanoseconds armed_for_ = 0;
};

}  // namespace fusionllm::inline v0
