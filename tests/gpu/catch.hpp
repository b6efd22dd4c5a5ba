// SPDX-License-Identifier: Apache-2.0
// As much of Catch2 as the tests that a GPU runs need, for machines that have nothing but a CUDA toolkit: tests/gpu.sh puts
// this folder before tests/. Its main is gpu/main.cpp.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace mini_catch {

struct skipped {
  std::string why;
};
struct stopped {};

struct test {
  std::string name, tags;
  void (*run)();
};
inline std::vector<test>& tests() {
  static std::vector<test> all;
  return all;
}
struct registrar {
  registrar(void (*run)(), std::string name, std::string tags = "") { tests().push_back({std::move(name), std::move(tags), run}); }
};

struct state {
  int failures = 0, checks = 0;
  std::vector<std::string> notes;  ///< of INFO, innermost last
  std::string first_failure;
};
inline state& now() {
  static state s;
  return s;
}

struct note {
  explicit note(const std::function<void(std::ostream&)>& write) {
    std::ostringstream s;
    write(s);
    now().notes.push_back(s.str());
  }
  ~note() { now().notes.pop_back(); }
};

inline void report(bool good, const char* what, const char* file, int line, bool required) {
  ++now().checks;
  if (good) return;
  std::string text = std::string(file) + ":" + std::to_string(line) + ": " + what;
  for (const std::string& n : now().notes) text += "; " + n;
  if (++now().failures <= 20) std::fprintf(stderr, "  failed: %s\n", text.c_str());
  if (now().first_failure.empty()) now().first_failure = text;
  if (required) throw stopped{};
}

}  // namespace mini_catch

#define MINI_CATCH_JOIN2(a, b) a##b
#define MINI_CATCH_JOIN(a, b) MINI_CATCH_JOIN2(a, b)
#define MINI_CATCH_TEST(f, ...) \
  static void f();              \
  static const mini_catch::registrar MINI_CATCH_JOIN(f, _entry)(&f, __VA_ARGS__); \
  static void f()
#define TEST_CASE(...) MINI_CATCH_TEST(MINI_CATCH_JOIN(mini_catch_test_, __LINE__), __VA_ARGS__)
#define CHECK(...) mini_catch::report(bool(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__, false)
#define REQUIRE(...) mini_catch::report(bool(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__, true)
#define CHECK_NOTHROW(...) ((__VA_ARGS__), mini_catch::report(true, #__VA_ARGS__, __FILE__, __LINE__, false))
#define INFO(...) \
  const mini_catch::note MINI_CATCH_JOIN(mini_catch_note_, __LINE__)([&](std::ostream& mini_catch_out) { mini_catch_out << __VA_ARGS__; })

class Approx {
 public:
  explicit Approx(double v) : value_(v) {}
  Approx& epsilon(double e) {
    epsilon_ = e;
    return *this;
  }
  Approx& margin(double m) {
    margin_ = m;
    return *this;
  }
  friend bool operator==(double x, const Approx& a) {
    return std::abs(x - a.value_) <= a.margin_ || std::abs(x - a.value_) <= a.epsilon_ * std::abs(a.value_);
  }

 private:
  double value_, epsilon_ = 1.2e-5, margin_ = 0;
};

namespace fusionllm_test {

/// Ends the test as skipped, for what a machine lacks.
[[noreturn]] inline void skip_program(const std::string& why) { throw mini_catch::skipped{why}; }

inline std::string environment(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

}  // namespace fusionllm_test
