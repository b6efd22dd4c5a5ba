// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/rates.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;

TEST_CASE("time is flops, bytes and launch") {
  constexpr fl::operator_rate r{2'000'000'000, 500'000'000, 7};  // 2 ns a flop, half a ns a byte
  static_assert(r.time(10, 4) == 29);
  CHECK(r.time(0, 0) == 7);
  CHECK(r.time(1, 1) == 2 + 1 + 7);  // halves round up
}

TEST_CASE("rates assumed from a machine") {
  const fl::device_rates r = fl::assumed_rates({"m", 0, 112'000'000'000'000, 1, 900'000'000'000, 5'000});
  CHECK(r.other.attoseconds_per_flop == 8929);
  CHECK(r.other.time(112'000'000'000'000, 0) == Approx(1'000'000'000).epsilon(1e-3));
  CHECK(r.other.time(0, 900'000'000'000) == Approx(1'000'000'000).epsilon(1e-3));
  CHECK(r.update.time(1'000'000, 0) == Approx(16e6 / 112e3 + 5000).epsilon(1e-3));
  CHECK(fusionllm_test::error_of([] { fl::assumed_rates({"m", 0, 0, 1, 0, 0}); }).says(fl::errc::topology, "m has a speed of 0"));
}

TEST_CASE("rates of a kind and direction come before those of all") {
  fl::device_rates r;
  r.other = {1, 2, 3};
  r.kinds.push_back({"linear", fl::direction::backward, {4, 5, 6}});
  CHECK(r.of("linear", fl::direction::backward) == fl::operator_rate{4, 5, 6});
  CHECK(r.of("linear", fl::direction::forward) == fl::operator_rate{1, 2, 3});
  CHECK(r.of("gelu", fl::direction::backward) == fl::operator_rate{1, 2, 3});
}
