// SPDX-License-Identifier: Apache-2.0
// Reading ahead: every answer is the source's, whatever the order; bounded; errors come with their step; no race (the
// thread sanitizer's build runs this too).
#include <fusionllm/trainer/prefetch.hpp>

#include <atomic>
#include <set>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u64;
using fusionllm_test::error_of;

namespace {

/// What a test sees of a source while it is read ahead.
struct watch {
  std::mutex mutex;
  std::condition_variable changed;
  std::multiset<u64> asked;
  std::set<std::thread::id> threads;
  std::atomic<int> inside{0};

  bool wait_until_asked(std::size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return asked.size() >= n; });
  }
};

class numbers final : public fl::data_source {
 public:
  explicit numbers(std::shared_ptr<watch> w, int delay_ms = 0, u64 bad_step = ~u64(0))
      : watch_(std::move(w)), delay_(delay_ms), bad_(bad_step) {}

  i64 batch() const override { return 8; }
  void fill(u64 step, i64 begin, i64 end, std::span<const fl::output_span> inputs) const override {
    ++watch_->inside;
    if (delay_) std::this_thread::sleep_for(std::chrono::milliseconds(delay_));
    for (const auto& input : inputs) {
      const i64 width = input.dims.count() / (std::max)(i64(1), end - begin);
      for (i64 row = begin; row < end; ++row)
        for (i64 k = 0; k < width; ++k) {
          const i64 value = i64(step) * 10000 + row * 100 + k + (input.name == "b" ? 7 : 0);
          if (input.type == fl::dtype::int32) static_cast<std::int32_t*>(input.data)[(row - begin) * width + k] = std::int32_t(value);
          else static_cast<float*>(input.data)[(row - begin) * width + k] = float(value);
        }
    }
    {
      const std::lock_guard lock(watch_->mutex);
      watch_->asked.insert(step);
      watch_->threads.insert(std::this_thread::get_id());
    }
    watch_->changed.notify_all();
    --watch_->inside;
    if (step == bad_) fl::fail(fl::errc::data, "picture 'x.png' is damaged");
  }
  i64 validation_batches() const override { return 3; }
  i64 validation_rows(i64 index) const override { return 8 - index; }
  i64 validation_sample(i64 index, i64 row) const override { return 100 * index - row; }
  void fill_validation(i64 index, i64 begin, i64 end, std::span<const fl::output_span> inputs) const override {
    fill(u64(1000 + index), begin, end, inputs);
  }
  u64 digest() const override { return 99; }
  std::string describe() const override { return "numbers"; }

 private:
  std::shared_ptr<watch> watch_;
  int delay_;
  u64 bad_;
};

struct answer {
  std::vector<float> a;
  std::vector<std::int32_t> b;
  bool operator==(const answer&) const = default;
};

answer ask(const fl::data_source& d, u64 step, i64 begin, i64 end, i64 width = 3) {
  answer r{std::vector<float>(std::size_t((end - begin) * width)), std::vector<std::int32_t>(std::size_t(end - begin))};
  const fl::output_span inputs[] = {{"a", std::span(r.a), {end - begin, width}}, {"b", std::span(r.b), {end - begin}}};
  d.fill(step, begin, end, inputs);
  return r;
}

}  // namespace

TEST_CASE("steps in order come from the thread, and are the source's") {
  const auto w = std::make_shared<watch>();
  const numbers direct(std::make_shared<watch>());
  const auto d = fl::prefetched(std::make_unique<numbers>(w), 3);
  CHECK(w->asked.empty());  // no thread before the first step
  for (u64 step = 5; step < 105; ++step) REQUIRE(ask(*d, step, 0, 8) == ask(direct, step, 0, 8));
  const std::lock_guard lock(w->mutex);
  CHECK(w->asked.count(5) == 1);
  CHECK(w->asked.count(50) == 1);  // never twice
  CHECK(w->threads.size() == 2);
  CHECK(w->asked.size() <= 100 + 3 + 1);
}

TEST_CASE("the next steps are filled while nobody asks, up to the depth") {
  for (const int depth : {1, 4}) {
    const auto w = std::make_shared<watch>();
    const auto d = fl::prefetched(std::make_unique<numbers>(w), depth);
    ask(*d, 0, 0, 8);
    REQUIRE(w->wait_until_asked(std::size_t(1 + depth)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(w->mutex);
    std::multiset<u64> expected;
    for (u64 s = 0; s <= u64(depth); ++s) expected.insert(s);
    CHECK(w->asked == expected);
  }
}

TEST_CASE("any order of steps, rows and shapes is answered as by the source") {
  const numbers direct(std::make_shared<watch>());
  const auto d = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>()), 2);
  struct question {
    u64 step;
    i64 begin, end, width;
  };
  for (const question& q :
       {question{3, 0, 8, 3}, {4, 0, 8, 3}, {4, 0, 8, 3},  {5, 0, 8, 3},  {9, 0, 8, 3},  {10, 0, 8, 3}, {2, 0, 8, 3},
        {3, 0, 4, 3},         {3, 4, 8, 3}, {4, 0, 4, 3},  {4, 4, 8, 3},  {5, 0, 8, 9},  {6, 0, 8, 9},  {7, 0, 8, 3},
        {8, 2, 2, 3},         {9, 2, 2, 3}, {12, 0, 8, 3}, {13, 0, 8, 3}, {15, 0, 8, 3}, {16, 0, 8, 3}, {~u64(0) >> 34, 0, 8, 3}}) {
    REQUIRE(ask(*d, q.step, q.begin, q.end, q.width) == ask(direct, q.step, q.begin, q.end, q.width));
    if (q.step % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the queue is full sometimes
  }
}

TEST_CASE("an error met ahead comes with its step, and the run may go on") {
  const auto d = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>(), 0, 4), 8);
  const numbers direct(std::make_shared<watch>());
  for (u64 step = 0; step < 4; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(ask(*d, step, 0, 8) == ask(direct, step, 0, 8));
  }
  for (int again = 0; again < 3; ++again) CHECK(error_of([&] { ask(*d, 4, 0, 8); }).says(fl::errc::data, "'x.png' is damaged"));
  for (u64 step = 5; step < 9; ++step) REQUIRE(ask(*d, step, 0, 8) == ask(direct, step, 0, 8));
  const auto at_once = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>(), 0, 0));
  CHECK(error_of([&] { ask(*at_once, 0, 0, 8); }).says(fl::errc::data, "'x.png' is damaged"));
}

TEST_CASE("it ends while the thread is filling, and the thread has ended with it") {
  for (int i = 0; i < 20; ++i) {
    const auto w = std::make_shared<watch>();
    {
      const auto d = fl::prefetched(std::make_unique<numbers>(w, i % 4), 3);
      ask(*d, 0, 0, 8);
    }
    CHECK(w->inside == 0);
    CHECK(w.use_count() == 1);
  }
  fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>()));  // never asked
}

TEST_CASE("a thread that hangs in its source is left behind, and takes the source with it once it may go on") {
  struct gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    std::atomic<bool> entered{false};
    std::atomic<int> sources{0};
  };
  class stuck final : public fl::data_source {
   public:
    explicit stuck(std::shared_ptr<gate> g) : gate_(std::move(g)) { ++gate_->sources; }
    ~stuck() override { --gate_->sources; }
    i64 batch() const override { return 8; }
    void fill(u64 step, i64, i64, std::span<const fl::output_span> inputs) const override {
      std::unique_lock lock(gate_->mutex);
      if (step != 0) gate_->entered = true;
      gate_->changed.wait(lock, [&] { return step == 0 || gate_->open; });
      static_cast<float*>(inputs[0].data)[0] = float(step);  // in memory that is there still
    }
    u64 digest() const override { return 1; }
    std::string describe() const override { return "a disk that is gone"; }

   private:
    std::shared_ptr<gate> gate_;
  };
  for (const bool waited : {true, false}) {  // whether anybody asked for the step that hangs
    const auto g = std::make_shared<gate>();
    const auto begin = std::chrono::steady_clock::now();
    {
      const fl::prefetched_data d(std::make_unique<stuck>(g), 2, std::chrono::milliseconds(50));
      ask(d, 0, 0, 8);
      for (int i = 0; i < 2000 && !g->entered; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (waited)
        CHECK(error_of([&] { ask(d, 1, 0, 8); }).says(fl::errc::timeout, "step 1", "for 0.05 s", "a disk that is gone"));
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK(g->sources == 1);
    {
      const std::lock_guard lock(g->mutex);
      g->open = true;
    }
    g->changed.notify_all();
    for (int i = 0; i < 2000 && g->sources > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(g->sources == 0);
  }
}

TEST_CASE("a slow source does not stall a step that is slower") {
  const auto d = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>(), 5), 3);
  ask(*d, 0, 0, 8);
  double waited = 1e9;
  for (int round = 0; round < 3; ++round) {  // the best of three: the machine is shared
    double sum = 0;
    for (u64 step = 1; step <= 20; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(8));  // the step
      const auto begin = std::chrono::steady_clock::now();
      ask(*d, u64(round) * 20 + step, 0, 8);
      sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    waited = (std::min)(waited, sum);
  }
  CHECK(waited < 0.03);  // 0.1 s without reading ahead
}

TEST_CASE("several threads ask for what they like") {
  const numbers direct(std::make_shared<watch>());
  const auto d = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>()), 2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (u64 step = 0; step < 60; ++step) {
        const i64 begin = t < 2 ? 0 : t, end = t < 2 ? 8 : t + 3;
        wrong += !(ask(*d, step, begin, end) == ask(direct, step, begin, end));
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("everything else is the source's") {
  const numbers direct(std::make_shared<watch>());
  const auto d = fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>()));
  CHECK(d->batch() == 8);
  CHECK(d->validation_batches() == 3);
  CHECK(d->validation_rows(2) == 6);
  CHECK(d->validation_sample(2, 3) == 197);
  CHECK(d->digest() == 99);
  CHECK(d->describe() == "numbers");
  std::vector<float> x(24), y(24);
  const fl::output_span to_x[] = {{"a", std::span(x), {8, 3}}}, to_y[] = {{"a", std::span(y), {8, 3}}};
  d->fill_validation(1, 0, 8, to_x);
  direct.fill_validation(1, 0, 8, to_y);
  CHECK(x == y);
  CHECK(error_of([] { fl::prefetched(nullptr); }).says(fl::errc::data, "no source"));
  CHECK(error_of([] { fl::prefetched(std::make_unique<numbers>(std::make_shared<watch>()), 0); }).says(fl::errc::config, "depth of 0"));
}
