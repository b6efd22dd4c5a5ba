// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/messages.hpp>

#include <limits>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

TEST_CASE("a summary and a verdict come back as they were, to the bit") {
  fl::step_summary s, t;
  s.squares = {{3, 0.1}, {7, std::numeric_limits<double>::infinity()}};
  s.losses = {{0, -1e-300}};
  t.losses = {{9, 9}, {8, 8}};
  std::vector<std::byte> bytes;
  s.encode(bytes);
  CHECK(bytes.size() == fl::step_summary::bytes(3));
  t.decode(bytes);
  REQUIRE(t.squares.size() == 2);
  REQUIRE(t.losses.size() == 1);
  CHECK(t.squares[0].index == 3);
  CHECK(t.squares[0].value == 0.1);
  CHECK(t.squares[1].value == std::numeric_limits<double>::infinity());
  CHECK(t.losses[0].value == -1e-300);
  CHECK(bytes[0] == std::byte(2));  // little-endian on every machine

  fl::step_verdict v{1.5, 2.5, 0.25, true, fl::skip_reason::not_finite, 0.5, {fl::fault_kind::cotangent, 2, 17, fl::fault::no, 1}}, w;
  v.encode(bytes);
  CHECK(bytes.size() == fl::step_verdict::skipped_bytes);
  w.decode(bytes);
  CHECK(w.loss == 1.5);
  CHECK(w.gradient_norm == 2.5);
  CHECK(w.gradient_scale == 0.25);
  CHECK(w.skipped);
  CHECK(w.reason == fl::skip_reason::not_finite);
  CHECK(w.mean_loss == 0.5);
  CHECK(w.first == v.first);
  v.skipped = false;
  v.encode(bytes);
  CHECK(bytes.size() == fl::step_verdict::bytes);
  w.decode(bytes);
  CHECK(!w.skipped);
  CHECK(!w.first);
  s.first = v.first;
  s.encode(bytes);
  t.decode(bytes);
  CHECK(t.first == s.first);
  CHECK(t.squares.size() == 2);
  s.first = {};
  s.encode(bytes);
  t.decode(bytes);
  CHECK(!t.first);
}

TEST_CASE("bytes that are no summary or verdict are protocol errors, whatever they claim") {
  fl::step_summary s;
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<std::byte> bytes(n, std::byte(0xFF));
    CHECK(error_of([&] { s.decode(bytes); }).code == fl::errc::protocol);
    fl::step_verdict v;
    CHECK(error_of([&] { v.decode(bytes); }).code == fl::errc::protocol);
  }
  s.squares.resize(4);
  s.losses.clear();
  std::vector<std::byte> bytes;
  s.encode(bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    CHECK(error_of([&] { s.decode(std::span(bytes).first(n)); }).code == fl::errc::protocol);
  CHECK(error_of([&] { s.decode(bytes); }).code == fl::errc::ok);
}

TEST_CASE("the slot of a gradient names its use and whether it is the total") {
  CHECK(fl::gradient_slot(0, false) == 0);
  CHECK(fl::gradient_slot(0, true) == 1);
  CHECK(fl::gradient_slot(5, true) == 11);
}
