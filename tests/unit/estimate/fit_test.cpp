// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/fit.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::direction;
using fusionllm_test::error_of;

namespace {

// Five measurements a size, one of them disturbed.
void measure(std::vector<fl::operator_sample>& out, const char* kind, direction way, fl::u64 flops, fl::u64 bytes,
             const fl::operator_rate& truth) {
  for (int i = 0; i < 5; ++i) out.push_back({kind, way, flops, bytes, truth.time(flops, bytes) * (i == 3 ? 7 : 1)});
}

}  // namespace

TEST_CASE("the fit finds flops and launch again, whatever single measurements say") {
  const fl::operator_rate truth{20'000'000, 0, 3'000};
  std::vector<fl::operator_sample> s;
  for (fl::u64 flops : {1'000'000u, 50'000'000u, 800'000'000u}) measure(s, "linear", direction::forward, flops, flops / 10, truth);
  const fl::operator_rate r = fl::fit_rates(s, {}).of("linear", direction::forward);
  for (fl::u64 flops : {1'000'000u, 50'000'000u, 800'000'000u})
    CHECK(r.time(flops, flops / 10) == Approx(truth.time(flops, flops / 10)).epsilon(0.01));
  CHECK(r.time(200'000'000, 20'000'000) == Approx(truth.time(200'000'000, 0)).epsilon(0.02));
}

TEST_CASE("the fit tells flops from bytes where sizes allow it") {
  const fl::operator_rate truth{5'000'000, 80'000'000, 0};
  std::vector<fl::operator_sample> s;
  measure(s, "mix", direction::backward, 1'000'000'000, 1'000, truth);
  measure(s, "mix", direction::backward, 1'000, 100'000'000, truth);
  measure(s, "mix", direction::backward, 300'000'000, 50'000'000, truth);
  const fl::operator_rate r = fl::fit_rates(s, {}).of("mix", direction::backward);
  CHECK(double(r.attoseconds_per_flop) == Approx(5e6).epsilon(0.02));
  CHECK(double(r.attoseconds_per_byte) == Approx(8e7).epsilon(0.02));
}

TEST_CASE("one size gives one coefficient, and an operator without flops goes by bytes") {
  std::vector<fl::operator_sample> s;
  measure(s, "linear", direction::forward, 1'000'000, 500, {1'000'000'000, 0, 0});
  measure(s, "embedding", direction::forward, 0, 4'000, {0, 2'000'000'000, 0});
  const fl::device_rates r = fl::fit_rates(s, {});
  CHECK(r.of("linear", direction::forward) == fl::operator_rate{1'000'000'000, 0, 0});
  CHECK(r.of("embedding", direction::forward) == fl::operator_rate{0, 2'000'000'000, 0});
}

TEST_CASE("no coefficient is negative: a bigger size that took less is no gain") {
  std::vector<fl::operator_sample> s{{"odd", direction::forward, 100, 100, 5'000}, {"odd", direction::forward, 10'000, 10'000, 4'000}};
  const fl::operator_rate r = fl::fit_rates(s, {}).of("odd", direction::forward);
  CHECK(r.time(100, 100) > 0);
  CHECK(r.time(10'000, 10'000) >= r.time(100, 100));
  CHECK(r.launch >= 0);
}

TEST_CASE("what was not measured stays, the optimizer has its own rate") {
  fl::device_rates assumed;
  assumed.kinds.push_back({"gelu", direction::forward, {1, 1, 1}});
  assumed.kinds.push_back({"linear", direction::forward, {1, 1, 1}});
  assumed.attoseconds_per_coded_byte = 9;
  std::vector<fl::operator_sample> s{{"linear", direction::forward, 1'000, 0, 1'000},
                                     {std::string(fl::update_kind), direction::forward, 1'000, 0, 3'000}};
  const fl::device_rates r = fl::fit_rates(s, assumed);
  CHECK(r.of("gelu", direction::forward) == fl::operator_rate{1, 1, 1});
  CHECK(r.of("linear", direction::forward).time(1'000, 0) == 1'000);
  CHECK(r.update.time(2'000, 0) == 6'000);
  CHECK(r.attoseconds_per_coded_byte == 9);
  CHECK(r.kinds.size() == 2);
}

TEST_CASE("a sample that took no time is refused") {
  std::vector<fl::operator_sample> s{{"linear", direction::forward, 1, 1, 0}};
  CHECK(error_of([&] { fl::fit_rates(s, {}); }).says(fl::errc::topology, "linear", "0 ns"));
}

TEST_CASE("probes give latency and bandwidth") {
  for (const fl::path truth : {fl::path{20 * fl::millisecond, 1'000'000}, fl::path{50'000, 5'000'000'000}, fl::path{0, 12'500'000}}) {
    std::vector<fl::link_probe> s;
    for (fl::u64 bytes : {64u, 65'536u, 1'048'576u})
      for (int i = 0; i < 3; ++i) s.push_back({bytes, truth.transfer(bytes) * (i == 1 ? 4 : 1) + 1});
    const fl::path p = fl::fit_path(s);
    CHECK(double(p.bytes_per_second) == Approx(double(truth.bytes_per_second)).epsilon(0.02));
    CHECK(double(p.latency) == Approx(double(truth.latency)).margin(20));
  }
}

TEST_CASE("probes that tell no bandwidth") {
  CHECK(error_of([] { fl::fit_path({}); }).says(fl::errc::topology, "no probe"));
  const std::vector<fl::link_probe> empty{{0, 100}};
  CHECK(error_of([&] { fl::fit_path(empty); }).says(fl::errc::topology, "no probe"));
  const std::vector<fl::link_probe> instant{{10, 0}};
  CHECK(error_of([&] { fl::fit_path(instant); }).says(fl::errc::topology, "10 bytes", "0 ns"));
  const std::vector<fl::link_probe> one{{1'000'000, 1'000'000'000}};
  CHECK(fl::fit_path(one) == fl::path{0, 1'000'000});
  const std::vector<fl::link_probe> faster{{1'000, 9'000}, {1'000'000, 5'000}};
  CHECK(fl::fit_path(faster).bytes_per_second > 0);
}
