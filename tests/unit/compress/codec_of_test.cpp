// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/codec_of.hpp>

#include <cmath>
#include <random>
#include <vector>

#include <fusionllm/compress/registry.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::dtype;
using fl::errc;
using fl::i64;

namespace {

constexpr const char* every_label[] = {"no_compression", "half_precision", "int8", "uniform_top_k", "ada_top_k"};

template <class F>
std::string fails(errc code, F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  FAIL("accepted");
  return {};
}

std::vector<float> wave(i64 n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i) x[std::size_t(i)] = std::sin(float(i) * 12.9898f) * float(1 + i % 7);
  return x;
}

template <class T>
std::vector<T> through(fl::codec& c, const std::vector<T>& x, dtype type, i64 rows,
                       const fl::link_context& context = {}) {
  std::vector<std::byte> frame;
  std::vector<T> y(x.size());
  c.encode(fl::tensor_in{x.data(), type, rows, i64(x.size()) / rows}, context, frame, nullptr);
  CHECK(i64(frame.size()) <= c.max_encoded_bytes(rows, i64(x.size()) / rows, type));
  c.decode(frame, fl::tensor_out{y.data(), type, rows, i64(x.size()) / rows}, context, nullptr);
  return y;
}

}  // namespace

TEST_CASE("no_compression passes every element type bit for bit") {
  const auto c = fl::make_codec("no_compression");
  std::vector<double> d = {1.0 / 3, -0.0, 5e-324, 1.7976931348623157e308};
  CHECK(through(*c, d, dtype::f64, 2) == d);
  const std::vector<std::int8_t> b = {-128, 127, 0};
  CHECK(through(*c, b, dtype::int8, 1) == b);
  const std::vector<fl::u16> h = {0x3C00, 0x8001, 0x7BFF, 0};
  CHECK(through(*c, h, dtype::f16, 1) == h);
  CHECK(through(*c, h, dtype::bf16, 4) == h);
  fl::mask some;
  some.rows = 1, some.columns = 4, some.all = false, some.positions = {1, 3};
  CHECK(through(*c, d, dtype::f64, 1, {&some, nullptr}) == std::vector<double>{0, -0.0, 0, 1.7976931348623157e308});
}

TEST_CASE("lossy codecs carry doubles and 16-bit floats by way of fp32, and integers exactly") {
  const auto x = wave(256);
  for (const char* label : every_label) {
    const auto c = fl::make_codec(label);
    std::vector<std::int32_t> tokens = {7, -1, 2147483647, 0};
    CHECK(through(*c, tokens, dtype::int32, 2) == tokens);
    const auto y = through(*c, x, dtype::f32, 4);
    const auto wide = through(*c, std::vector<double>(x.begin(), x.end()), dtype::f64, 4);
    CHECK(wide == std::vector<double>(y.begin(), y.end()));
    std::vector<fl::bfloat16> narrow;
    for (float v : x) narrow.emplace_back(v);
    const auto back = through(*c, narrow, dtype::bf16, 4);
    for (const auto& v : back) CHECK(std::isfinite(float(v)));
    std::vector<fl::float16> top(64, fl::float16(65504.0f));
    top[3] = fl::float16(-65504.0f);
    for (const auto& v : through(*c, top, dtype::f16, 1)) CHECK(std::isfinite(float(v)));
  }
  const std::vector<double> big = {1, 1e300};
  CHECK(fails(errc::numeric, [&] { through(*fl::make_codec("int8"), big, dtype::f64, 1); }).find("fp32")
        != std::string::npos);
  for (auto type : {dtype::f16, dtype::bf16}) {
    const std::vector<fl::u16> infinite = {0, type == dtype::f16 ? fl::u16(0xFC00) : fl::u16(0x7F80)};
    CHECK(fails(errc::numeric, [&] { through(*fl::make_codec("ada_top_k"), infinite, type, 1); }).find("entry 1")
          != std::string::npos);
  }
}

TEST_CASE("limits and extents are checked before anything is allocated") {
  fl::codec_options options;
  options.limits.max_elements = 100;
  const auto small = fl::make_codec("ada_top_k", options);
  const auto large = fl::make_codec("ada_top_k");
  const auto x = wave(101);
  std::vector<float> y(101);
  std::vector<std::byte> frame;
  fails(errc::resource, [&] { small->encode(x.data(), 1, 101, nullptr, nullptr, frame, nullptr); });
  large->encode(x.data(), 1, 101, nullptr, nullptr, frame, nullptr);
  fails(errc::resource, [&] { small->decode(frame, y.data(), 1, 101, nullptr, nullptr); });
  const i64 huge = i64(1) << 40;
  fails(errc::model, [&] { large->decode(frame, y.data(), huge, 1, nullptr, nullptr); });
  fails(errc::resource, [&] { large->decode(frame, y.data(), 1 << 20, 1 << 20, nullptr, nullptr); });
  fails(errc::model, [&] { large->encode(x.data(), -1, 5, nullptr, nullptr, frame, nullptr); });
  fl::mask other;
  other.keep_all(2, 50);
  fails(errc::model, [&] { large->encode(x.data(), 1, 101, &other, nullptr, frame, nullptr); });
  other.rows = 1, other.columns = 101, other.all = false, other.positions = {101};
  fails(errc::model, [&] { large->encode(x.data(), 1, 101, &other, nullptr, frame, nullptr); });
}

TEST_CASE("both ends must agree on codec, mask and reference") {
  const auto x = wave(64);
  std::vector<float> y(64);
  fl::mask half;
  half.rows = 4, half.columns = 16, half.all = false;
  for (fl::u32 i = 0; i < 64; i += 2) half.positions.push_back(i);
  const fl::known_tensor known{x.data()};
  const auto c = fl::make_codec("half_precision");
  std::vector<std::byte> plain, masked, difference;
  c->encode(x.data(), 4, 16, nullptr, nullptr, plain, nullptr);
  c->encode(x.data(), 4, 16, &half, nullptr, masked, nullptr);
  c->encode(x.data(), 4, 16, nullptr, &known, difference, nullptr);
  fails(errc::protocol, [&] { fl::make_codec("int8")->decode(plain, y.data(), 4, 16, nullptr, nullptr); });
  fails(errc::protocol, [&] { c->decode(plain, y.data(), 4, 16, &half, nullptr); });
  fails(errc::protocol, [&] { c->decode(masked, y.data(), 4, 16, nullptr, nullptr); });
  fails(errc::protocol, [&] { c->decode(difference, y.data(), 4, 16, nullptr, nullptr); });
  fails(errc::protocol, [&] { c->decode(plain, y.data(), 16, 4, nullptr, nullptr); });
  c->decode(difference, fl::tensor_out{y.data(), dtype::f32, 4, 16}, {nullptr, &known}, nullptr);
  CHECK(y == x);  // the difference to itself is zero
}

TEST_CASE("a reference makes a small difference cheap") {
  const auto known = wave(64 * 64);
  auto x = known;
  for (std::size_t i = 0; i < x.size(); i += 50) x[i] += 0.25f;
  fl::codec_options options;
  options.ratio = 50;
  options.scope = fl::selection_scope::tensor;
  const auto c = fl::make_codec("ada_top_k", options);
  const fl::known_tensor both{known.data()};
  std::vector<std::byte> frame;
  std::vector<float> y(x.size());
  c->encode(fl::tensor_in{x.data(), dtype::f32, 64, 64}, {nullptr, &both}, frame, nullptr);
  c->decode(frame, fl::tensor_out{y.data(), dtype::f32, 64, 64}, {nullptr, &both}, nullptr);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(x[i] - y[i]) < 0.26f);
  c->set_ratio(20);
  c->encode(fl::tensor_in{x.data(), dtype::f32, 64, 64}, {nullptr, &both}, frame, nullptr);
  c->decode(frame, fl::tensor_out{y.data(), dtype::f32, 64, 64}, {nullptr, &both}, nullptr);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(x[i] - y[i]) < 0.002f);
}

TEST_CASE("random and damaged frames of every codec end as protocol errors or finite tensors") {
  std::mt19937 g(5);
  const auto x = wave(9 * 40);
  for (const char* label : every_label)
    for (double ratio : {2.0, 10.0, 60.0}) {
      fl::codec_options options;
      options.ratio = ratio;
      const auto c = fl::make_codec(label, options);
      std::vector<std::byte> good, frame;
      fl::mask made, seen;
      c->encode(x.data(), 9, 40, nullptr, nullptr, good, &made);
      std::vector<float> y(x.size());
      for (int round = 0; round < 2000; ++round) {
        const fl::mask* outer = nullptr;
        if (round % 4 == 0) {  // random bytes behind a true or a random header
          frame.resize(g() % 1600);
          for (auto& b : frame) b = std::byte(g());
          if (round % 8 == 0) std::copy_n(good.begin(), std::min(frame.size(), std::size_t(20)), frame.begin());
        } else {
          if (round % 3 == 0) outer = &made;
          c->encode(x.data(), 9, 40, outer, nullptr, frame, nullptr);
          for (unsigned i = 0; i <= g() % 3; ++i) frame[g() % frame.size()] = std::byte(g());
          if (round % 5 == 0) frame.resize(g() % (frame.size() + 1));
        }
        try {
          c->decode(frame, y.data(), 9, 40, outer, &seen);
          CHECK(fl::first_non_finite(y.data(), i64(y.size())) < 0);
          CHECK(seen.count() <= 360);
        } catch (const fl::error& e) {
          CHECK(e.code() == errc::protocol);
        }
      }
    }
}
