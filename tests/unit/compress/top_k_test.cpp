// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/top_k.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <fusionllm/compress/registry.hpp>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using fl::value_coding;

namespace {

constexpr float tiniest = std::numeric_limits<float>::denorm_min();
constexpr float infinity = std::numeric_limits<float>::infinity();

struct sent {
  std::vector<std::byte> frame;
  std::vector<float> y;
  fl::mask made, seen;
  fl::payload_header header;
};

sent send(fl::codec& c, const std::vector<float>& x, i64 rows, const fl::mask* forward = nullptr) {
  sent s;
  const i64 columns = rows == 0 ? 0 : i64(x.size()) / rows;
  c.encode(x.data(), rows, columns, forward, nullptr, s.frame, &s.made);
  s.y.assign(x.size(), -7.0f);
  c.decode(s.frame, s.y.data(), rows, columns, forward, &s.seen);
  s.header = fl::payload_header::read(s.frame);
  CHECK(s.made.positions == s.seen.positions);
  CHECK(s.made.all == s.seen.all);
  return s;
}

std::unique_ptr<fl::codec> keeping(i64 k, value_coding values = value_coding::f32,
                                   fl::selection_scope scope = fl::selection_scope::tensor) {
  fl::codec_options options;
  options.keep = k;
  options.values = values;
  options.scope = scope;
  return fl::make_codec("ada_top_k", options);
}

std::unique_ptr<fl::codec> at_ratio(double ratio, fl::selection_scope scope = fl::selection_scope::row) {
  fl::codec_options options;
  options.ratio = ratio;
  options.scope = scope;
  return fl::make_codec("ada_top_k", options);
}

std::vector<float> wave(i64 n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i) x[std::size_t(i)] = std::sin(float(i) * 12.9898f) * float(1 + i % 7);
  return x;
}

using positions = std::vector<u32>;

}  // namespace

TEST_CASE("ties take the lowest index: all zero, all equal, signed zeros") {
  CHECK(send(*keeping(2), {0, 0, 0, 0, 0}, 1).made.positions == positions{0, 1});
  CHECK(send(*keeping(3), {2, -2, 2, 2, -2}, 1).made.positions == positions{0, 1, 2});
  CHECK(send(*keeping(2), {-0.0f, 0.0f, -0.0f, 0.0f}, 1).made.positions == positions{0, 1});
  CHECK(send(*keeping(2), {0.0f, -1, 0.0f, 1, -1}, 1).made.positions == positions{1, 3});
  const auto s = send(*keeping(1), {-0.0f, 0.0f}, 1);
  CHECK(std::signbit(s.y[0]));  // as encoded
  CHECK(!std::signbit(s.y[1]));
}

TEST_CASE("n = 1, and k of 0, n and more") {
  for (i64 k : {0, 1, 2})
    for (auto values : {value_coding::f32, value_coding::f16, value_coding::int8}) {
      const auto s = send(*keeping(k, values), {3.0f}, 1);
      CHECK(s.made.count() == (k > 0));
      CHECK(s.y[0] == Approx(k > 0 ? 3.0f : 0.0f).epsilon(0.004));
    }
  const auto x = wave(40);
  const auto none = send(*keeping(0), x, 4);
  CHECK(i64(none.frame.size()) == fl::payload_header_bytes);  // a valid empty frame
  CHECK(none.made.count() == 0);
  CHECK(none.y == std::vector<float>(40, 0.0f));
  for (i64 k : {40, 41, 1'000'000}) {
    const auto s = send(*keeping(k), x, 4);
    CHECK(s.made.all);
    CHECK(s.y == x);
    CHECK(s.header.form.positions == fl::position_coding::dense);
  }
  CHECK(send(*keeping(10, value_coding::int8, fl::selection_scope::row), x, 4).made.all);
}

TEST_CASE("a ratio of 0 to 1 sends the tensor as it is; above it the frame is that much smaller") {
  const auto x = wave(64 * 256);
  for (double ratio : {0.0, 0.5, 1.0}) {
    const auto s = send(*at_ratio(ratio), x, 64);
    CHECK(s.y == x);
    CHECK(i64(s.frame.size()) == fl::payload_header_bytes + 4 * 64 * 256);
  }
  for (double ratio : {1.01, 1.9, 2.1, 3.0, 3.8, 4.0, 5.0, 10.0, 20.0, 50.0, 100.0})
    for (auto scope : {fl::selection_scope::row, fl::selection_scope::tensor}) {
      const auto s = send(*at_ratio(ratio, scope), x, 64);
      const double reached = 4.0 * 64 * 256 / double(s.frame.size());
      CHECK(reached >= ratio);
      if (ratio > 4.0) CHECK(reached < ratio * (scope == fl::selection_scope::tensor ? 1.02 : 1.25));
    }
  CHECK(send(*at_ratio(1.99), x, 64).header.form.values == value_coding::f16);  // fits whole, better than int8
  CHECK(send(*at_ratio(3.8), x, 64).header.form.positions == fl::position_coding::dense);
  for (double bad : {-1.0, double(infinity), std::nan(""), 1e7}) {
    try {
      at_ratio(bad);
      FAIL("accepted");
    } catch (const fl::error& e) {
      CHECK(e.code() == fl::errc::config);
    }
  }
}

TEST_CASE("NaN and infinity are a typed error, at any k, also where they would not be sent") {
  for (float bad : {infinity, -infinity, std::nanf("")})
    for (i64 k : {0, 1, 5, 50})
      for (std::size_t at : {std::size_t(0), std::size_t(17), std::size_t(39)}) {
        auto x = wave(40);
        x[at] = bad;
        try {
          send(*keeping(k), x, 4);
          FAIL("accepted");
        } catch (const fl::error& e) {
          CHECK(e.code() == fl::errc::numeric);
          CHECK(std::string(e.what()).find("entry " + std::to_string(at) + " (row " + std::to_string(at / 10))
                != std::string::npos);
          CHECK(std::string(e.what()).find(std::isnan(bad) ? "nan" : "inf") != std::string::npos);
        }
      }
}

TEST_CASE("denormals are chosen and sent like other numbers") {
  const std::vector<float> x = {0, 3 * tiniest, -5 * tiniest, tiniest, 0, 4 * tiniest};
  for (auto values : {value_coding::f32, value_coding::f16, value_coding::int8}) {
    const auto s = send(*keeping(2, values), x, 1);
    CHECK(s.made.positions == positions{2, 5});
    CHECK(s.y == std::vector<float>{0, 0, -5 * tiniest, 0, 0, 4 * tiniest});
  }
}

TEST_CASE("chosen entries arrive as encoded, the others as zero") {
  const auto x = wave(32 * 100);
  for (auto scope : {fl::selection_scope::row, fl::selection_scope::tensor})
    for (auto values : {value_coding::f32, value_coding::f16, value_coding::int8})
      for (i64 k : {1, 7, 60}) {
        const auto s = send(*keeping(k, values, scope), x, 32);
        CHECK(s.made.count() == (scope == fl::selection_scope::row ? 32 * k : k));
        CHECK(s.made.per_row == (scope == fl::selection_scope::row ? k : 0));
        std::vector<float> kept, expected(x.size(), 0.0f);
        for (u32 p : s.made.positions) kept.push_back(x[p]);
        std::vector<std::byte> bytes(std::size_t(fl::value_bytes(values, i64(kept.size()))));
        const int e = fl::write_values(values, kept.data(), i64(kept.size()), bytes.data());
        fl::read_values(values, e, bytes.data(), i64(kept.size()), kept.data());
        for (std::size_t i = 0; i < kept.size(); ++i) expected[s.made.positions[i]] = kept[i];
        CHECK(s.y == expected);
      }
}

TEST_CASE("cotangents within the forward mask are values alone; a higher ratio sends a subset by token") {
  const auto x = wave(64 * 256), cotangent = wave(64 * 256 + 99);
  const std::vector<float> g(cotangent.begin() + 99, cotangent.end());
  const auto forward = send(*at_ratio(10), x, 64);
  const auto back = send(*at_ratio(10), g, 64, &forward.made);
  CHECK(back.made.positions == forward.made.positions);
  CHECK(back.header.masked);
  CHECK(back.header.form.positions == fl::position_coding::dense);
  CHECK(back.frame.size() < forward.frame.size());
  const auto exact = send(*at_ratio(1), g, 64, &forward.made);  // a fast way back: fp32 values of the mask
  std::vector<float> restricted(g.size(), 0.0f);
  for (u32 p : forward.made.positions) restricted[p] = g[p];
  CHECK(exact.y == restricted);
  const auto subset = send(*at_ratio(50), g, 64, &forward.made);
  CHECK(subset.made.count() < forward.made.count());
  CHECK(subset.made.per_row == subset.made.count() / 64);
  CHECK(std::includes(forward.made.positions.begin(), forward.made.positions.end(), subset.made.positions.begin(),
                      subset.made.positions.end()));
  CHECK(4.0 * 64 * 256 / double(subset.frame.size()) >= 50);
}

TEST_CASE("raw where the encoding would not be smaller") {
  const auto x = wave(100);
  CHECK(send(*keeping(99), x, 1).made.all);
  CHECK(send(*keeping(99), x, 1).y == x);
  CHECK(send(*keeping(90), x, 1).made.count() == 90);
}

TEST_CASE("a frame that claims even rows and has others is refused") {
  const auto c = keeping(4, value_coding::f16);
  const std::vector<float> x = {9, 8, 7, 0, 0, 0, 0, 6};
  auto s = send(*c, x, 2);
  CHECK(s.made.positions == positions{0, 1, 2, 7});
  s.frame[3] |= std::byte(4);
  CHECK_THROWS_AS(c->decode(s.frame, s.y.data(), 2, 4, nullptr, nullptr), fl::error);
}

TEST_CASE("the planner's size of a frame is exact") {
  const auto x = wave(48 * 200);
  for (double ratio : {1.0, 1.5, 3.0, 7.0, 30.0, 300.0, 1e6})
    for (auto scope : {fl::selection_scope::row, fl::selection_scope::tensor}) {
      const auto c = at_ratio(ratio, scope);
      const auto forward = send(*c, x, 48);
      CHECK(i64(forward.frame.size()) == c->encoded_bytes(48, 200));
      CHECK(forward.made.count() == c->kept(48, 200));
      const auto back = send(*c, x, 48, &forward.made);
      const i64 masked = forward.made.count();
      CHECK(i64(back.frame.size()) == c->encoded_bytes(48, 200, masked, forward.made.per_row > 0));
    }
}

TEST_CASE("the ratio can change between frames, and a default keeps one entry a row at the least") {
  const auto x = wave(10 * 64);
  const auto c = at_ratio(10);
  const auto before = send(*c, x, 10).frame.size();
  c->set_ratio(1000);
  const auto s = send(*c, x, 10);
  CHECK(s.frame.size() < before);
  CHECK(s.made.per_row == 1);
  c->set_ratio(1);
  CHECK(send(*c, x, 10).y == x);
}
