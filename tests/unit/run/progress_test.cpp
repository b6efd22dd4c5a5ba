// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/progress.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

std::string shown(fl::u64 every, int width, fl::u64 steps) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  {
    fl::progress p(out, every, width);
    for (fl::u64 s = 1; s <= steps; ++s) {
      fl::step_event e;
      e.step = s, e.steps = 10, e.loss = 2.5, e.tokens = 100, e.seconds = 0.5;
      p.on_step(e);
      if (s == 3) p.on_message({fl::severity::warning, "hot"});
    }
  }
  std::fclose(out);
  std::string r(text, size);
  std::free(text);
  return r;
}

}  // namespace

TEST_CASE("plain lines every few steps, and the last") {
  const std::string text = shown(4, 0, 10);
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);  // 4, 8, 10 and the warning
  CHECK(text.find("step 8/10  loss 2.5000") != std::string::npos);
  CHECK(text.find("200 tokens/s  0:01 left") != std::string::npos);
  CHECK(text.find("warning: hot\n") != std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("a terminal gets one moving line that fits") {
  for (int width : {21, 60, 80, 200}) {
    const std::string text = shown(1, width, 10);
    CHECK(std::count(text.begin(), text.end(), '\r') == 10);
    CHECK(text.back() == '\n');
    std::size_t column = 0;
    for (char c : text) {
      column = c == '\r' || c == '\n' ? 0 : column + 1;
      REQUIRE(column < std::size_t(width));
    }
  }
  CHECK(shown(1, 100, 5).find("[####################....................] 5/10") != std::string::npos);
}

TEST_CASE("clocks") {
  CHECK(fl::clock_text(0) == "0:00");
  CHECK(fl::clock_text(59.6) == "1:00");
  CHECK(fl::clock_text(3661) == "1:01:01");
  CHECK(fl::clock_text(-1) == "?");
  CHECK(fl::clock_text(0.0 / 0.0) == "?");
}
