// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/cpu/loops.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <fusionllm/device/cpu/gemm.hpp>
#include <fusionllm/device/cpu/updates.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using fl::u64;

namespace {

std::vector<fl::vector_isa> sets() {
  std::vector<fl::vector_isa> r;
  for (auto isa : {fl::vector_isa::portable, fl::vector_isa::avx2, fl::vector_isa::avx512})
    if (fl::has(isa)) r.push_back(isa);
  return r;
}

std::vector<float> numbers(i64 n, u64 seed, float scale = 2) {
  std::vector<float> v(std::size_t(n), 0.0f);
  for (i64 i = 0; i < n; ++i) v[std::size_t(i)] = scale * (fl::uniform(fl::random_word({seed, 0, 0, 0}, u64(i))) - 0.5f);
  return v;
}
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("random words are Philox's, from any block on and for any count") {
  const fl::random_key key{0x123456789ABCDEFu, 0x1F00000003u, 300, 17};
  for (auto isa : sets())
    for (u64 first : {u64(0), u64(4), u64(512), (u64(1) << 34) - 8})
      for (i64 n : {1, 4, 7, 31, 32, 33, 512}) {
        std::vector<u32> words(std::size_t(n) + 1, 77u);
        fl::loops_for(isa).random_words(key, first, words.data(), n);
        bool right = words.back() == 77u;
        for (i64 i = 0; i < n; ++i) right = right && words[std::size_t(i)] == fl::random_word(key, first + u64(i));
        INFO(fl::name_of(isa) << ", first " << first << ", n " << n);
        CHECK(right);
      }
}

TEST_CASE("exponentials are within two units in the last place, and pass on what is no number") {
  for (auto isa : sets()) {
    std::vector<float> x;
    for (float v = -86.9f; v < 87.9f; v += 0.0037f) x.push_back(v);
    for (float v = -1e-3f; v < 1e-3f; v += 1.7e-5f) x.push_back(v);
    std::vector<float> e(x.size(), 0.0f);
    fl::loops_for(isa).softmax_gradient(x.data(), 0, 0, 1, e.data(), i64(x.size()));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(double(e[i]) / std::exp(double(x[i])) - 1));
    INFO(fl::name_of(isa));
    CHECK(worst < 2 * 0x1p-23);
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    float special[] = {-infinity, -1e30f, nan, -nan, 0};
    fl::loops_for(isa).softmax_gradient(special, 0, 0, 1, special, 5);
    CHECK((special[0] >= 0 && special[0] < 1e-37f));
    CHECK((special[1] >= 0 && special[1] < 1e-37f));
    CHECK(std::isnan(special[2]));
    CHECK(std::isnan(special[3]));
    CHECK(special[4] == 1);
    float row[] = {1, nan, 2}, rest = 0;
    CHECK(std::isnan(fl::loops_for(isa).log_sum_exp(row, 3, &rest)));
  }
}

TEST_CASE("gelu keeps its tails and its slope for large, tiny and non-finite inputs") {
  const auto exact = [](double x) { return x / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x))); };
  for (auto isa : sets()) {
    std::vector<float> x = {-1e30f, -60, -8, -5, -1, -1e-3f, -1e-20f, 0, 1e-20f, 1e-3f, 1, 5, 8, 60, 1e12f}, y(x.size(), 0.0f);
    std::vector<float> d(x.size(), 1.0f), dx(x.size(), 0.0f);
    fl::loops_for(isa).gelu(x.data(), y.data(), i64(x.size()));
    fl::loops_for(isa).gelu_backward(x.data(), d.data(), dx.data(), i64(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(fl::name_of(isa) << " x " << x[i]);
      const double tolerance = x[i] < -4 ? 1e-7 : 1e-6 * std::abs(exact(x[i]));
      CHECK(std::abs(y[i] - exact(x[i])) <= tolerance);
      CHECK(std::isfinite(dx[i]));
      if (x[i] <= -60) CHECK(std::abs(dx[i]) < 1e-6f);
      if (x[i] >= 60) CHECK(dx[i] == Approx(1.0f));
    }
    float nan = std::numeric_limits<float>::quiet_NaN();
    fl::loops_for(isa).gelu(&nan, &nan, 1);
    CHECK(std::isnan(nan));
  }
}

TEST_CASE("AdamW has the same bits as the plain formula for every instruction set and number of threads") {
  for (i64 n : {1, 15, 16, 10'007}) {
    auto w = numbers(n, 1), m = numbers(n, 2, 0.1f), v = numbers(n, 3, 0.1f);
    const auto g = numbers(n, 4);
    for (float& x : v) x = std::abs(x);
    const auto f = fl::adamw_factors_of<float>({}, 3, 1e-3, 0.37, true);
    auto w0 = w, m0 = m, v0 = v;
    fl::adamw_update(w0.data(), g.data(), m0.data(), v0.data(), n, f);
    for (auto isa : sets())
      for (int threads : {1, 2, 3}) {
        fl::cpu_context c(threads, isa);
        auto w1 = w, m1 = m, v1 = v;
        fl::adamw_update(c, w1.data(), g.data(), m1.data(), v1.data(), n, f);
        INFO(fl::name_of(isa) << ", n " << n);
        CHECK((same(w0, w1) && same(m0, m1) && same(v0, v1)));
      }
  }
}

TEST_CASE("AdamW does what its paper says") {
  float w = 2, m = 0.5f, v = 0.25f;
  const fl::adamw_settings s{0.9, 0.95, 1e-8, 0.1};
  fl::adamw_update(&w, std::vector<float>{3}.data(), &m, &v, 1, fl::adamw_factors_of<float>(s, 2, 0.01, 0.5, true));
  const double m1 = 0.9 * 0.5 + 0.1 * 1.5, v1 = 0.95 * 0.25 + 0.05 * 1.5 * 1.5;
  CHECK(m == Approx(m1));
  CHECK(v == Approx(v1));
  CHECK(w == Approx(2 - 0.01 * 0.1 * 2 - 0.01 * (m1 / (1 - 0.81)) / (std::sqrt(v1 / (1 - 0.9025)) + 1e-8)));
}

TEST_CASE("a sum of squares has the same bits as in plain code") {
  for (i64 n : {0, 1, 17, 65'536, 65'537, 300'001}) {
    const auto x = numbers(n, 9);
    const double expected = fl::sum_of_squares(x.data(), n);
    double exact = 0;
    for (float v : x) exact += double(v) * double(v);
    CHECK(expected == Approx(exact));
    for (auto isa : sets())
      for (int threads : {1, 3}) {
        fl::cpu_context c(threads, isa);
        CHECK(fl::sum_of_squares(c, x.data(), n) == expected);
      }
  }
}

TEST_CASE("products and loops do not depend on where their data lies") {
  const i64 m = 37, n = 53, k = 29;
  const auto a = numbers(m * k, 1), b = numbers(k * n, 2);
  std::vector<float> expected(std::size_t(m * n), 0.0f);
  fl::detail::gemm(m, n, k, {a.data(), k}, {b.data(), n}, expected.data(), n, false);
  for (std::size_t shift = 1; shift < 16; shift += 3) {
    std::vector<float> a1(a.size() + shift, 0.0f), b1(b.size() + shift, 0.0f), c1(expected.size() + shift, 0.0f);
    std::copy(a.begin(), a.end(), a1.begin() + i64(shift));
    std::copy(b.begin(), b.end(), b1.begin() + i64(shift));
    fl::detail::gemm(m, n, k, {a1.data() + shift, k}, {b1.data() + shift, n}, c1.data() + shift, n, false);
    CHECK(std::memcmp(c1.data() + shift, expected.data(), expected.size() * sizeof(float)) == 0);
    for (auto isa : sets()) {
      const fl::loop_table& l = fl::loops_for(isa);
      float rest = 0;
      CHECK(l.dot(a1.data() + shift, b1.data() + shift, m) == l.dot(a.data(), b.data(), m));
      CHECK(l.log_sum_exp(a1.data() + shift, m, &rest) == l.log_sum_exp(a.data(), m, &rest));
    }
  }
}

TEST_CASE("transposition turns blocks and edges") {
  for (auto isa : sets())
    for (auto [rows, n] : {std::pair<i64, i64>{1, 1}, {16, 16}, {33, 50}, {70, 3}}) {
      const auto x = numbers(rows * n, 3);
      std::vector<float> t(x.size(), 0.0f);
      fl::loops_for(isa).transpose(x.data(), rows, n, 0, rows / 2, t.data());
      fl::loops_for(isa).transpose(x.data(), rows, n, rows / 2, rows, t.data());
      bool right = true;
      for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < n; ++c) right = right && t[std::size_t(c * rows + r)] == x[std::size_t(r * n + c)];
      CHECK(right);
    }
}

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
TEST_CASE("the caller's OpenMP setting survives a product") {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  float a = 2, b = 3, c = 0;
  fl::detail::gemm(1, 1, 1, {&a, 1}, {&b, 1}, &c, 1, false);
  CHECK(c == 6);
  CHECK(omp_get_max_threads() == 3);
  omp_set_num_threads(before);
}
#endif

TEST_CASE("what a task throws reaches the caller, whichever thread it ran on") {
  fl::cpu_context c(2);
  for (i64 bad : {0, 7})
    CHECK_THROWS_AS(c.each(8, [&](int, i64 t) { if (t == bad) fl::fail(fl::errc::internal, "task ", t); }), fl::error);
  int done = 0;
  c.each(1, [&](int, i64) { ++done; });
  CHECK(done == 1);
}
