// SPDX-License-Identifier: Apache-2.0
// A data source that is read ahead: one thread fills the batches of the next steps while a step runs. It learns from each
// question which rows of which inputs will be asked for next; a question that it did not foresee is answered directly, so
// that every answer is that of the source, whatever the order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "data.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Memory for some rows of some inputs.
class batch_memory {
 public:
  batch_memory() = default;
  /// Without memory it is but a shape.
  explicit batch_memory(std::span<const output_span> like, bool with_memory = true) {
    for (const auto& s : like) {
      names_.push_back(std::make_unique<std::string>(s.name));
      memory_.push_back(with_memory ? std::make_unique<std::byte[]>(bytes_of(s)) : nullptr);
      spans_.emplace_back(*names_.back(), s.type, s.dims, memory_.back().get());
    }
  }

  std::span<const output_span> spans() const { return spans_; }
  bool is_like(std::span<const output_span> other) const {
    if (other.size() != spans_.size()) return false;
    for (std::size_t i = 0; i < other.size(); ++i)
      if (other[i].name != spans_[i].name || other[i].type != spans_[i].type || other[i].dims != spans_[i].dims) return false;
    return true;
  }
  void copy_to(std::span<const output_span> to) const {
    for (std::size_t i = 0; i < to.size(); ++i)
      if (const std::size_t n = bytes_of(to[i])) std::memcpy(to[i].data, spans_[i].data, n);
  }

 private:
  static std::size_t bytes_of(const output_span& s) { return std::size_t(u64(s.dims.count()) * size_of(s.type)); }

  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<output_span> spans_;
};

}  // namespace detail

class prefetched_data final : public data_source {
 public:
  /// `depth` batches are held at most. The thread starts with the first step that is asked for.
  explicit prefetched_data(std::unique_ptr<data_source> source, int depth = 3) : source_(std::move(source)), depth_(std::size_t(depth)) {
    if (!source_) fail(errc::data, "there is no source to read ahead from");
    if (depth < 1 || depth > 1024) fail(errc::config, "a depth of ", depth, " batches, expected 1 to 1024");
  }
  ~prefetched_data() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  const data_source& source() const { return *source_; }
  i64 batch() const override { return source_->batch(); }
  i64 validation_batches() const override { return source_->validation_batches(); }
  i64 validation_rows(i64 index) const override { return source_->validation_rows(index); }
  void fill_validation(i64 index, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    source_->fill_validation(index, begin, end, inputs);
  }
  u64 digest() const override { return source_->digest(); }
  std::string describe() const override { return source_->describe(); }

  /// Errors: those of the source for this step, also where they were met ahead; errc::timeout.
  void fill(u64 step, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    std::unique_lock lock(mutex_);
    const auto foreseen = [&] { return begin == begin_ && end == end_ && shape_.is_like(inputs); };
    const auto found = [&] { return !ready_.empty() && ready_.front().step == step && foreseen(); };
    const auto coming = [&] { return ready_.empty() && next_ == step && !stopped_ && foreseen(); };
    if (!found() && !coming()) {
      aim(step + 1, begin, end, inputs);
      lock.unlock();
      return source_->fill(step, begin, end, inputs);
    }
    if (!filled_.wait_for(lock, longest_wait, [&] { return found() || !coming(); }))
      fail(errc::timeout, "the data of step ", step, " did not come for ", longest_wait.count(), " s (", source_->describe(),
           "): check the disk it is read from");
    if (!found()) {  // somebody else asked for something else meanwhile
      lock.unlock();
      return source_->fill(step, begin, end, inputs);
    }
    one taken = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    work_.notify_one();
    if (taken.failure) std::rethrow_exception(taken.failure);
    taken.memory.copy_to(inputs);
    lock.lock();
    if (spare_.size() < depth_) spare_.push_back(std::move(taken.memory));
  }

 private:
  static constexpr std::chrono::seconds longest_wait{300};
  struct one {
    u64 step = 0;
    detail::batch_memory memory{};
    std::exception_ptr failure{};
  };

  // Sends the thread to `step` and those after it. Under the lock.
  void aim(u64 step, i64 begin, i64 end, std::span<const output_span> like) const {
    ++generation_;
    ready_.clear();
    if (!shape_.is_like(like)) {
      spare_.clear();
      shape_ = detail::batch_memory(like, false);
    }
    next_ = step, begin_ = begin, end_ = end;
    stopped_ = false;
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        stopped_ = true;  // without a thread to spare all goes on, only slower
      }
    }
    work_.notify_all();
    filled_.notify_all();
  }

  void run() const {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return ended_ || (!stopped_ && ready_.size() < depth_); });
      if (ended_) return;
      const u64 step = next_, generation = generation_;
      const i64 begin = begin_, end = end_;
      one made{step};
      try {
        made.memory = take_memory();
        lock.unlock();
        source_->fill(step, begin, end, made.memory.spans());
      } catch (...) {
        made.failure = std::current_exception();
      }
      if (!lock.owns_lock()) lock.lock();
      if (generation != generation_) continue;
      stopped_ = made.failure != nullptr;
      ++next_;
      ready_.push_back(std::move(made));
      filled_.notify_all();
    }
  }
  detail::batch_memory take_memory() const {
    while (!spare_.empty()) {
      detail::batch_memory m = std::move(spare_.back());
      spare_.pop_back();
      if (m.is_like(shape_.spans())) return m;
    }
    return detail::batch_memory(shape_.spans());
  }

  std::unique_ptr<data_source> source_;
  std::size_t depth_;
  mutable std::mutex mutex_;
  mutable std::condition_variable work_;    ///< there is something to fill
  mutable std::condition_variable filled_;  ///< something was filled, or will not be
  mutable std::deque<one> ready_;           ///< of steps in order, the last before next_
  mutable std::vector<detail::batch_memory> spare_;
  mutable detail::batch_memory shape_;      ///< what is asked for
  mutable u64 next_ = 0, generation_ = 0;
  mutable i64 begin_ = 0, end_ = 0;
  mutable bool stopped_ = true, ended_ = false;
  mutable std::thread thread_;
};

/// `source`, read ahead by one thread.
inline std::unique_ptr<data_source> prefetched(std::unique_ptr<data_source> source, int depth = 3) {
  return std::make_unique<prefetched_data>(std::move(source), depth);
}

}  // namespace fusionllm::inline v0
