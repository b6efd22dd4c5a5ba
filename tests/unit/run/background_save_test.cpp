// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/background_save.hpp>

#include <future>
#include <stdexcept>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
fl::background_save::result of(fl::background_save& s) {
  auto r = s.wait();
  REQUIRE(r);
  return *r;
}
}  // namespace

TEST_CASE("a save runs on another thread, and what became of it is told once") {
  fl::background_save s;
  CHECK_FALSE(s.poll());
  CHECK_FALSE(s.wait());
  std::promise<void> go;
  std::thread::id saver;
  const auto may = go.get_future().share();
  s.start(7, "step-7.ckpt", [&, may](const std::string& path) {
    may.wait();
    saver = std::this_thread::get_id();
    return fl::u64(path.size());
  });
  CHECK_FALSE(s.poll());  // under way
  go.set_value();
  std::optional<fl::background_save::result> r;
  for (int i = 0; i < 10000 && !r; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    r = s.poll();
  }
  REQUIRE(r);
  CHECK(r->step == 7);
  CHECK(r->path == "step-7.ckpt");
  CHECK(r->bytes == 11);
  CHECK(r->seconds >= 0);
  CHECK_FALSE(r->failure);
  CHECK(saver != std::this_thread::get_id());
  CHECK_FALSE(s.poll());
  CHECK_FALSE(s.wait());
}

TEST_CASE("a failure is a result, of the library's kind or as resource; the next save is its own") {
  fl::background_save s;
  s.start(1, "a", [](const std::string&) -> fl::u64 { fl::fail(fl::errc::checkpoint, "damaged"); });
  auto r = of(s);
  REQUIRE(r.failure);
  CHECK(r.failure->code() == fl::errc::checkpoint);
  CHECK(std::string(r.failure->what()) == "damaged");
  s.start(2, "b", [](const std::string&) -> fl::u64 { throw std::runtime_error("full"); });
  r = of(s);
  REQUIRE(r.failure);
  CHECK(r.failure->code() == fl::errc::resource);
  CHECK(std::string(r.failure->what()) == "full");
  s.start(3, "c", [](const std::string&) { return fl::u64(5); });
  r = of(s);
  CHECK(r.step == 3);
  CHECK(r.bytes == 5);
  CHECK_FALSE(r.failure);
}

TEST_CASE("a save that is under way ends before its object") {
  bool saved = false;
  {
    fl::background_save s;
    s.start(1, "a", [&](const std::string&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      saved = true;
      return fl::u64(0);
    });
  }
  CHECK(saved);
}
