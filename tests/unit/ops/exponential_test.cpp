// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/ops/exponential.hpp>

#include <limits>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("exp is right to a unit in the last place") {
  double worst = 0;
  for (float x = -86.9f; x < 88.0f; x += 0.00137f) {
    const double e = std::exp(double(x));
    worst = std::max(worst, std::abs(double(fl::exponential(x)) - e) / e);
  }
  CHECK(worst < 0x1p-23);
  CHECK(fl::exponential(0.0f) == 1.0f);
}
TEST_CASE("exp of large numbers stays finite and positive, of NaN it is NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(std::isfinite(fl::exponential(infinity)));
  CHECK(fl::exponential(infinity) == fl::exponential(88.0f));
  CHECK(fl::exponential(-infinity) > 0.0f);
  CHECK(fl::exponential(-infinity) < 2e-38f);
  CHECK(std::isnan(fl::exponential(std::numeric_limits<float>::quiet_NaN())));
}
TEST_CASE("choose takes either argument with all its bits") {
  CHECK(std::signbit(fl::choose(true, -0.0f, 1.0f)));
  CHECK(fl::choose(false, 1.0, 2.0) == 2.0);
  CHECK(std::isnan(fl::choose(true, std::numeric_limits<double>::quiet_NaN(), 0.0)));
  CHECK(fl::choose(false, std::numeric_limits<float>::quiet_NaN(), 0.0f) == 0.0f);
}
