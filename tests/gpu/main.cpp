// SPDX-License-Identifier: Apache-2.0
// Runs the tests whose tags hold the first argument (all without one), and prints a line a test and, last, one line of
// JSON. Returns 1 if a test failed, 77 if all were skipped.
#include <chrono>
#include <exception>

#include "catch.hpp"

static std::string quoted(const std::string& s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    r += c == '\n' ? ' ' : c;
  }
  return r + '"';
}

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  int passed = 0, failed = 0, skipped = 0;
  std::string json;
  for (const auto& t : mini_catch::tests()) {
    if (!wanted.empty() && t.tags.find(wanted) == std::string::npos) continue;
    mini_catch::now() = {};
    std::string how = "passed", why;
    const auto began = std::chrono::steady_clock::now();
    try {
      t.run();
    } catch (const mini_catch::skipped& s) {
      how = "skipped", why = s.why;
    } catch (const mini_catch::stopped&) {
    } catch (const std::exception& e) {
      mini_catch::now().failures++;
      if (mini_catch::now().first_failure.empty()) mini_catch::now().first_failure = e.what();
    }
    if (mini_catch::now().failures) how = "failed", why = mini_catch::now().first_failure;
    ++(how == "passed" ? passed : how == "failed" ? failed : skipped);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    std::printf("%-7s %6.1f s  %s%s%s\n", how.c_str(), seconds, t.name.c_str(), why.empty() ? "" : ": ", why.c_str());
    std::fflush(stdout);
    char number[32];
    std::snprintf(number, sizeof number, "%.2f", seconds);
    json += std::string(json.empty() ? "" : ", ") + "{\"test\": " + quoted(t.name) + ", \"result\": \"" + how + "\", \"seconds\": " + number +
            (why.empty() ? "" : ", \"why\": " + quoted(why)) + "}";
  }
  std::printf("JSON {\"passed\": %d, \"failed\": %d, \"skipped\": %d, \"tests\": [%s]}\n", passed, failed, skipped, json.c_str());
  return failed ? 1 : passed == 0 && skipped ? 77 : 0;
}
