// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/values.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::value_coding;

namespace {

constexpr float largest = (std::numeric_limits<float>::max)();
constexpr float tiniest = std::numeric_limits<float>::denorm_min();

std::vector<float> round_trip(value_coding coding, const std::vector<float>& x) {
  const i64 n = i64(x.size());
  std::vector<std::byte> bytes(std::size_t(fl::value_bytes(coding, n)));
  const int exponent = fl::write_values(coding, x.data(), n, bytes.data());
  std::vector<float> y(x.size());
  fl::read_values(coding, exponent, bytes.data(), n, y.data());
  return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<fl::u32>(a[i]) != std::bit_cast<fl::u32>(b[i])) return false;
  return a.size() == b.size();
}

template <class F>
bool refused(F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    return e.code() == fl::errc::protocol;
  }
  return false;
}

std::vector<float> noise(std::size_t n, unsigned seed, float scale) {
  std::mt19937 g(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(g) * scale;
  return x;
}

}  // namespace

TEST_CASE("fp16 with a scale is exact to 2^-11 of each value, whatever the magnitude of the tensor") {
  for (float scale : {1e-37f, 1e-20f, 1e-6f, 1.0f, 1e4f, 1e30f}) {
    const auto x = noise(1000, 1, scale);
    const auto y = round_trip(value_coding::f16, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::fabs(y[i] - x[i]) <= std::fabs(x[i]) * 0x1p-11f + scale * 0x1p-38f);
  }
}

TEST_CASE("int8 is off by half a step of its block at most") {
  for (float scale : {1e-37f, 1e-6f, 1.0f, 1e30f}) {
    const auto x = noise(1000, 2, scale);
    const auto y = round_trip(value_coding::int8, x);
    for (std::size_t begin = 0; begin < x.size(); begin += 64) {
      float top = 0;
      for (std::size_t i = begin; i < std::min(x.size(), begin + 64); ++i) top = std::max(top, std::fabs(x[i]));
      for (std::size_t i = begin; i < std::min(x.size(), begin + 64); ++i)
        CHECK(std::fabs(y[i] - x[i])
              <= top / 127.0f * (top < 0x1.FCp-120f ? 1.01f : 0.505f));  // a scale near 2^-126 is coarser
    }
  }
}

TEST_CASE("the ends of fp32 survive every coding") {
  for (auto coding : {value_coding::f32, value_coding::f16, value_coding::int8})
    for (float v : {0.0f, tiniest, 3 * tiniest, 200 * tiniest, 0x1p-126f, 0x1.FCp-120f, 0x1.FFFFFEp-120f, 1.0f,
                    65504.0f, 65520.0f, 0x1.FFFp14f, largest * 0.999f, largest}) {
      const auto y = round_trip(coding, {v, -v, 0.0f, v / 2});
      CHECK(std::fabs(y[0] - v) <= v * 0.004f);
      CHECK(y[1] == -y[0]);
      CHECK(y[2] == 0.0f);
      CHECK(std::isfinite(y[0]));
    }
}

TEST_CASE("writing what was read changes nothing") {
  const auto rounds_up = round_trip(value_coding::f16, {0x1.FFFp0f, 0x1p-38f});
  CHECK(rounds_up == round_trip(value_coding::f16, rounds_up));
  std::mt19937 g(7);
  for (auto coding : {value_coding::f32, value_coding::f16, value_coding::int8})
    for (int round = 0; round < 300; ++round) {
      const std::size_t n = 1 + g() % 200;
      std::vector<float> x(n);
      const int kind = round % 4;
      for (float& v : x) {
        v = std::bit_cast<float>(fl::u32(g()) & (kind == 0 ? 0x80FFFFFFu : 0xFFFFFFFFu));  // denormals, or any bits
        if (kind == 1) v = float(int(g() % 2001) - 1000);
        if (kind == 2) v = std::ldexp(float(g() % 256), int(g() % 12) - 140);
        if (fl::magnitude_key(v) >= fl::non_finite_key) v = largest;
      }
      const auto once = round_trip(coding, x);
      CHECK(same_bits(once, round_trip(coding, once)));
    }
}

TEST_CASE("every magnitude has an fp16 exponent and an int8 scale in range") {
  for (fl::u64 key = 1; key < fl::non_finite_key; key = key + 1 + key / 1000) {
    const float v = std::bit_cast<float>(fl::u32(key));
    const int e = fl::f16_exponent(fl::u32(key));
    CHECK((e >= fl::least_f16_exponent && e <= fl::largest_f16_exponent));
    const double scaled = std::ldexp(double(v), e);
    CHECK((scaled >= 16384 * (1 - 0x1p-12) && scaled < 32768));
    const fl::u16 code = fl::int8_scale_code(fl::u32(key));
    CHECK(fl::int8_scale_exists(code));
    const double q = double(v) / double(fl::int8_scale(code));
    CHECK((q < 127.5 && (q >= 126.5 || (code >= 0x8000u && (q > 63 || code == 0x8000u)))));
  }
  CHECK(fl::f16_exponent(0) == 0);
  CHECK(fl::int8_scale_code(0) == 0);
}

TEST_CASE("vector and plain loops write and read the same") {
  for (float scale : {1e-39f, 1e-20f, 1.0f, 1e37f}) {
    const auto x = noise(640, 11, scale);
    std::vector<std::byte> whole(std::size_t(fl::value_bytes(value_coding::f16, 640)));
    const int exponent = fl::write_values(value_coding::f16, x.data(), 640, whole.data());
    std::vector<float> y(640);
    fl::read_values(value_coding::f16, exponent, whole.data(), 640, y.data());
    const float first = std::ldexp(1.0f, exponent / 2), second = std::ldexp(1.0f, exponent - exponent / 2);
    for (std::size_t i = 0; i < 640; ++i) {
      fl::float16 h(x[i] * first * second);
      CHECK(fl::load_little<fl::u16>(whole.data() + 2 * i) == h.bits);
      std::vector<float> one(1);
      fl::read_values(value_coding::f16, exponent, whole.data() + 2 * i, 1, one.data());
      CHECK(one[0] == y[i]);
    }
    // a block of 64 is written at once, one of 63 by the plain loop
    std::vector<std::byte> block(66), shorter(65);
    for (std::size_t b = 0; b < 640; b += 64) {
      auto v = std::vector<float>(x.begin() + std::ptrdiff_t(b), x.begin() + std::ptrdiff_t(b + 64));
      v[63] = 0;
      fl::write_values(value_coding::int8, v.data(), 64, block.data());
      fl::write_values(value_coding::int8, v.data(), 63, shorter.data());
      std::vector<float> from_block(64), from_shorter(63);
      fl::read_values(value_coding::int8, 0, block.data(), 64, from_block.data());
      fl::read_values(value_coding::int8, 0, shorter.data(), 63, from_shorter.data());
      from_block.resize(63);
      CHECK(same_bits(from_block, from_shorter));
      block.resize(65);
      CHECK(block == shorter);
      block.resize(66);
    }
  }
}

TEST_CASE("bytes that no writer writes are refused") {
  std::vector<float> y(64);
  std::vector<std::byte> bytes(128);
  const auto read = [&](value_coding coding, int exponent, i64 n) {
    return refused([&] { fl::read_values(coding, exponent, bytes.data(), n, y.data()); });
  };
  CHECK(read(value_coding::f16, fl::least_f16_exponent - 1, 4));
  CHECK(read(value_coding::f16, fl::largest_f16_exponent + 1, 4));
  CHECK(read(value_coding::int8, 1, 4));
  CHECK(read(value_coding::f32, -1, 4));
  CHECK(!read(value_coding::f16, 0, 64));
  for (std::size_t at : {std::size_t(1), std::size_t(127)}) {
    bytes[at] = std::byte(0x7C);  // infinity
    CHECK(read(value_coding::f16, 0, 64));
    bytes[at] = std::byte(0);
  }
  CHECK(!read(value_coding::int8, 0, 64));
  bytes[40] = std::byte(0x80);  // -128
  CHECK(read(value_coding::int8, 0, 64));
  bytes[40] = std::byte(0);
  for (unsigned code : {0x0001u, 0x007Fu, 0x7F80u, 0x7FC0u, 0x7C05u, 0x8018u, 0xFFFFu}) {
    fl::store_little(bytes.data(), fl::u16(code));
    CHECK(read(value_coding::int8, 0, 64));
  }
}
