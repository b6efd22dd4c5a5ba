// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/bounded_archive.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "unit/error_of.hpp"
#include <fusionllm/cluster/control.hpp>
#include <fusionllm/core/philox.hpp>

namespace fl = fusionllm;
using fl::u32;
using fl::u64;
using fusionllm_test::error_of;

namespace {

fl::assignment example_assignment() {
  fl::assignment a;
  a.epoch = 3;
  a.stage_of = {0, 0, 1, 2};
  a.stages = {{{0, 1}}, {{2}}, {}};
  a.micro_batches = 4;
  a.codecs = {{0, 1, "ada_top_k", 12.5}, {1, 0, "int8", 1}};
  a.holds = {1, -2, fl::i64(1) << 60};
  a.resumes = 1;
  return a;
}
fl::roster example_roster() { return {{{0, "a", "host:1"}, {1, "", "[::1]:2"}}, {{0, 1, 8'000'000, 5}, {1, 0, 0, 0}}}; }
fl::measured example_measured() { return {{{"linear", 1, 10, 20, 30}, {"", 0, 0, 0, -1}}, {{1, 1024, 99}}}; }
fl::report example_report() {
  fl::report r;
  r.step = 5;
  r.loss = 0.1;
  r.traffic = {{1, 2, 3, 4, 5, 6}};
  return r;
}

// Whatever these bytes are, decoding ends with a T or a protocol error, and takes little memory.
template <class T>
void feed(std::span<const std::byte> bytes) {
  forget_largest_allocation();
  const auto e = error_of([&] { fl::decode_control<T>(bytes); });
  const bool known = e.code == fl::errc::ok || e.code == fl::errc::protocol;
  CHECK(known);
  CHECK(largest_allocation() <= 16 * bytes.size() + 4096);
}

template <class T>
void torture(const T& x) {
  const auto bytes = fl::encode_control(x);
  CHECK(fl::encode_control(fl::decode_control<T>(bytes)) == bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CHECK(error_of([&] { fl::decode_control<T>(std::span(bytes).first(n)); }).code == fl::errc::protocol);
  }
  auto longer = bytes;
  longer.push_back(std::byte(0));
  CHECK(error_of([&] { fl::decode_control<T>(longer); }).says(fl::errc::protocol, "1 bytes too many"));
  for (u64 seed = 0; seed < 3000; ++seed) {
    auto broken = bytes;
    u64 n = 0;
    const auto draw = [&] { return fl::random_word({seed, 8, 0, 0}, n++); };
    for (u32 k = 1 + draw() % 3; k > 0; --k) {
      const std::size_t at = draw() % broken.size();
      if (draw() % 2) broken[at] = std::byte(draw());
      else
        for (std::size_t i = at; i < (std::min)(at + 8, broken.size()); ++i) broken[i] = std::byte(0xFF);  // an absurd length
    }
    feed<T>(broken);
  }
}

}  // namespace

TEST_CASE("control messages come back as they were; damaged, cut and absurd ones are protocol errors") {
  torture(example_assignment());
  torture(example_roster());
  torture(example_measured());
  torture(example_report());
  torture(fl::failure{7, "text"});
  torture(fl::joining{"cpu", 1 << 30, 2});
  torture(fl::step_number{9});
}

TEST_CASE("random bytes decode to nothing or a protocol error") {
  for (u64 seed = 0; seed < 3000; ++seed) {
    std::vector<std::byte> bytes(fl::random_word({seed, 9, 0, 0}, 0) % 100);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(fl::random_word({seed, 9, 0, 0}, i + 1) % (seed % 2 ? 256 : 3));
    feed<fl::assignment>(bytes);
    feed<fl::roster>(bytes);
    feed<fl::measured>(bytes);
    feed<fl::report>(bytes);
    feed<fl::failure>(bytes);
  }
}

TEST_CASE("the length of a list is checked against the bytes that are left before anything is allocated") {
  auto bytes = fl::encode_control(fl::failure{1, std::string(100, 'x')});
  for (const u64 claim : {u64(101), u64(1) << 31, u64(1) << 40, ~u64(0)}) {
    for (std::size_t i = 0; i < 8; ++i) bytes[1 + 4 + i] = std::byte(claim >> (8 * i));
    forget_largest_allocation();
    const auto e = error_of([&] { fl::decode_control<fl::failure>(bytes); });
    CHECK(e.says(fl::errc::protocol, "claims " + std::to_string(claim) + " elements", "100 bytes are left"));
    CHECK(largest_allocation() < 4096);
  }
  CHECK(error_of([&] { fl::decode_control<fl::failure>(std::vector<std::byte>(fl::control_cap + 1)); }).says(fl::errc::protocol, "the cap is"));
}
