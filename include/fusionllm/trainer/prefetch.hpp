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

/// What those who ask share with the thread that fills, and the source: it lives as long as the last of them, for a thread
/// that hangs in its source is left behind.
struct read_ahead {
  struct one {
    u64 step = 0;
    batch_memory memory{};
    std::exception_ptr failure{};
  };

  // Sends the thread to `at` and the steps after it. Under the lock.
  void aim(u64 at, i64 first, i64 last, std::span<const output_span> like) {
    ++generation;
    ready.clear();
    if (!shape.is_like(like)) {
      spare.clear();
      shape = batch_memory(like, false);
    }
    next = at, begin = first, end = last;
    stopped = false;
    work.notify_all();
    filled.notify_all();
  }

  // The thread's.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return ended || (!stopped && ready.size() < depth); });
      if (ended) break;
      const u64 step = next, aimed = generation;
      const i64 first = begin, last = end;
      one made{step};
      try {
        made.memory = take_memory();
        lock.unlock();
        source->fill(step, first, last, made.memory.spans());
      } catch (...) {
        made.failure = std::current_exception();
      }
      if (!lock.owns_lock()) lock.lock();
      hangs = false;
      if (aimed != generation) continue;
      stopped = made.failure != nullptr;
      ++next;
      ready.push_back(std::move(made));
      filled.notify_all();
    }
    running = false;
    filled.notify_all();
  }
  batch_memory take_memory() {
    while (!spare.empty()) {
      batch_memory m = std::move(spare.back());
      spare.pop_back();
      if (m.is_like(shape.spans())) return m;
    }
    return batch_memory(shape.spans());
  }

  std::unique_ptr<data_source> source;
  std::size_t depth = 1;
  std::mutex mutex{};
  std::condition_variable work{};    ///< there is something to fill
  std::condition_variable filled{};  ///< something was filled, or will not be
  std::deque<one> ready{};           ///< of steps in order, the last before `next`
  std::vector<batch_memory> spare{};
  batch_memory shape{};              ///< what is asked for
  u64 next = 0, generation = 0;
  i64 begin = 0, end = 0;
  bool stopped = true, ended = false, running = false;
  bool hangs = false;                ///< somebody waited too long for what the thread is filling
};

}  // namespace detail

class prefetched_data final : public data_source {
 public:
  /// `depth` batches are held at most; nothing is waited for longer than `patience`. The thread starts with the first step
  /// that is asked for.
  explicit prefetched_data(std::unique_ptr<data_source> source, int depth = 3, std::chrono::milliseconds patience = std::chrono::minutes(5))
      : patience_(patience) {
    if (!source) fail(errc::data, "there is no source to read ahead from");
    if (depth < 1 || depth > 1024) fail(errc::config, "a depth of ", depth, " batches, expected 1 to 1024");
    ahead_->source = std::move(source);
    ahead_->depth = std::size_t(depth);
  }
  /// A thread that hangs in the source is not waited for: it ends, and the source with it, when the source lets it go.
  ~prefetched_data() override {
    std::unique_lock lock(ahead_->mutex);
    ahead_->ended = true;
    ahead_->work.notify_all();
    const auto most = ahead_->hangs ? std::chrono::milliseconds(0) : patience_;
    const bool over = ahead_->filled.wait_for(lock, most, [&] { return !ahead_->running; });
    lock.unlock();
    if (!thread_.joinable()) return;
    if (over) thread_.join();
    else thread_.detach();
  }

  const data_source& source() const { return *ahead_->source; }
  i64 batch() const override { return source().batch(); }
  i64 validation_batches() const override { return source().validation_batches(); }
  i64 validation_rows(i64 index) const override { return source().validation_rows(index); }
  i64 validation_sample(i64 index, i64 row) const override { return source().validation_sample(index, row); }
  void fill_validation(i64 index, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    source().fill_validation(index, begin, end, inputs);
  }
  std::string class_name(i64 label) const override { return source().class_name(label); }
  std::string validation_file(i64 sample) const override { return source().validation_file(sample); }
  u64 digest() const override { return source().digest(); }
  std::string describe() const override { return source().describe(); }

  /// Errors: those of the source for this step, also where they were met ahead; errc::timeout.
  void fill(u64 step, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    auto& a = *ahead_;
    std::unique_lock lock(a.mutex);
    const auto foreseen = [&] { return begin == a.begin && end == a.end && a.shape.is_like(inputs); };
    const auto found = [&] { return !a.ready.empty() && a.ready.front().step == step && foreseen(); };
    const auto coming = [&] { return a.ready.empty() && a.next == step && !a.stopped && foreseen(); };
    if (!found() && !coming()) {
      a.aim(step + 1, begin, end, inputs);
      start();
      lock.unlock();
      return source().fill(step, begin, end, inputs);
    }
    if (!a.filled.wait_for(lock, patience_, [&] { return found() || !coming(); })) {
      a.hangs = true;
      fail(errc::timeout, "the data of step ", step, " did not come for ", std::chrono::duration<double>(patience_).count(), " s (",
           source().describe(), "): check the disk it is read from");
    }
    if (!found()) {  // somebody else asked for something else meanwhile
      lock.unlock();
      return source().fill(step, begin, end, inputs);
    }
    auto taken = std::move(a.ready.front());
    a.ready.pop_front();
    lock.unlock();
    a.work.notify_one();
    if (taken.failure) std::rethrow_exception(taken.failure);
    taken.memory.copy_to(inputs);
    lock.lock();
    if (a.spare.size() < a.depth) a.spare.push_back(std::move(taken.memory));
  }

 private:
  // Under the lock.
  void start() const {
    if (thread_.joinable()) return;
    try {
      thread_ = std::thread([ahead = ahead_] { ahead->run(); });
      ahead_->running = true;
    } catch (const std::system_error&) {
      ahead_->stopped = true;  // without a thread to spare all goes on, only slower
    }
  }

  std::shared_ptr<detail::read_ahead> ahead_ = std::make_shared<detail::read_ahead>();
  std::chrono::milliseconds patience_;
  mutable std::thread thread_;
};

/// `source`, read ahead by one thread.
inline std::unique_ptr<data_source> prefetched(std::unique_ptr<data_source> source, int depth = 3) {
  return std::make_unique<prefetched_data>(std::move(source), depth);
}

}  // namespace fusionllm::inline v0
