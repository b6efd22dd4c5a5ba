// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/half.hpp>

#include <cmath>
#include <limits>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u16;
using fl::u32;

namespace {
// The nearest of all 16-bit values, ties to the one with an even last bit, by search.
template <class Half>
u16 nearest(float x, u16 infinity) {
  u16 low = 0;
  for (u16 bit = 0x4000; bit; bit = u16(bit >> 1))  // the largest that is not above |x|
    if (u16(low | bit) <= infinity) {
      Half h;
      h.bits = u16(low | bit);
      if (float(h) <= std::fabs(x)) low = u16(low | bit);
    }
  Half a, b;
  a.bits = low;
  b.bits = u16(low + 1);
  if (low == infinity) return low;
  const double step = double(low + 1 == infinity ? 2 * double(float(a)) -
                                                       [&] {
                                                         Half c;
                                                         c.bits = u16(low - 1);
                                                         return double(float(c));
                                                       }()
                                                 : double(float(b)));
  const double down = double(std::fabs(x)) - double(float(a)), up = step - double(std::fabs(x));
  if (down < up || (down == up && (low & 1) == 0)) return low;
  return u16(low + 1);
}
}  // namespace

TEST_CASE("every 16-bit value survives the way to fp32 and back") {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    fl::float16 h;
    h.bits = u16(bits);
    const bool nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF);
    if (nan)
      CHECK(std::isnan(float(fl::float16(float(h)))));
    else
      CHECK(fl::float16(float(h)).bits == bits);
    fl::bfloat16 b;
    b.bits = u16(bits);
    const bool b_nan = (bits & 0x7F80) == 0x7F80 && (bits & 0x7F);
    if (b_nan)
      CHECK(std::isnan(float(fl::bfloat16(float(b)))));
    else
      CHECK(fl::bfloat16(float(b)).bits == bits);
  }
}
TEST_CASE("rounding goes to the nearest, ties to even, also among subnormals") {
  for (int exponent = -27; exponent <= 16; ++exponent)
    for (float m = 1.0f; m < 2.0f; m += 0.00013f) {
      const float x = std::ldexp(m, exponent);
      CHECK(fl::float16(x).bits == nearest<fl::float16>(x, 0x7C00));
      CHECK(fl::float16(-x).bits == (nearest<fl::float16>(x, 0x7C00) | 0x8000));
    }
  CHECK(fl::float16(65519.0f).bits == 0x7BFF);
  CHECK(fl::float16(65520.0f).bits == 0x7C00);
  CHECK(fl::float16(0x1p-25f).bits == 0);  // a tie goes to even, which is 0
  CHECK(fl::float16(std::nextafter(0x1p-25f, 1.0f)).bits == 1);
  CHECK(fl::bfloat16(1.00390625f).bits == 0x3F80);  // a tie
  CHECK(fl::bfloat16(1.01171875f).bits == 0x3F82);
  CHECK(fl::bfloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
}
TEST_CASE("zeros keep their signs, infinities stay") {
  CHECK(fl::float16(-0.0f).bits == 0x8000);
  CHECK(fl::bfloat16(-0.0f).bits == 0x8000);
  CHECK(fl::float16(-std::numeric_limits<float>::infinity()).bits == 0xFC00);
  CHECK(fl::bfloat16(std::numeric_limits<float>::infinity()).bits == 0x7F80);
}
