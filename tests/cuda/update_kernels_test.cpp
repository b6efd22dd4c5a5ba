// SPDX-License-Identifier: Apache-2.0
// Updates of all parameters in one launch, and sums of squares: the bits of the plain loops, for parameters of any length
// and alignment.
#include <fusionllm/cuda/operators.hpp>

#include <limits>

#include <fusionllm/device/sum_of_squares.hpp>

#include "catch.hpp"
#include "node_run.hpp"
#include "team_device.hpp"

namespace fl = fusionllm;
using fl::i64;
using seam::numbers;

namespace {

/// Parameters of several lengths in one memory; every second one begins 4 bytes past a multiple of 16.
struct parameters {
  std::vector<numbers> weight, gradient, m, v;
  std::vector<std::vector<fl::bfloat16>> rounded;
  std::vector<fl::update_item> items;
  fl::update_list list;

  explicit parameters(const std::vector<i64>& counts) : rounded(counts.size()) {
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const auto made = [&](std::vector<numbers>& where, fl::u32 stream) {
        where.push_back(seam::drawn(std::size_t(counts[k]) + 1, stream + fl::u32(k)));
        return where.back().data() + k % 2;
      };
      float *w = made(weight, 100), *g = made(gradient, 200), *a = made(m, 300), *b = made(v, 400);
      for (float& x : v.back()) x = std::abs(x);
      rounded[k].resize(std::size_t(counts[k]));
      items.push_back({w, g, a, b, k % 3 ? nullptr : rounded[k].data(), counts[k], k % 2 == 0});
    }
    list.pieces = fl::place_pieces(items);
    list.items = items.data();
    list.count = i64(items.size());
  }
};

const std::vector<i64> lengths{1, 3, 4096, 65537, 5, 140000, 16, 65536};

template <class Launch>
void check_adamw() {
  parameters p(lengths), expected(lengths);
  fl::device_context c;
  const auto plain = fl::adamw_factors_of<float>({}, 3, 1e-3, 0.5, false);
  const auto decaying = fl::adamw_factors_of<float>({}, 3, 1e-3, 0.5, true);
  fl::adamw_all<Launch>(c, p.list, plain, decaying);
  for (const fl::update_item& i : expected.items)
    fl::adamw_update(i.weight, i.gradient, i.m, i.v, i.count, i.decays ? decaying : plain);
  CHECK(p.weight == expected.weight);
  CHECK(p.m == expected.m);
  CHECK(p.v == expected.v);
  for (const fl::update_item& i : p.items)
    for (i64 k = 0; i.rounded && k < i.count; ++k) REQUIRE(i.rounded[k].bits == fl::bfloat16(i.weight[k]).bits);
}

template <class Launch>
void check_squares() {
  const parameters p(lengths);
  fl::device_context c;
  std::vector<double> sums(std::size_t(p.list.pieces)), out(lengths.size());
  fl::sum_of_squares_all<Launch>(c, p.list, out.data(), sums.data());
  for (std::size_t k = 0; k < lengths.size(); ++k)
    CHECK(out[k] == fl::sum_of_squares(p.items[k].gradient, p.items[k].count));
}

}  // namespace

TEST_CASE("AdamW over all parameters has the bits of plain loops") {
  check_adamw<fl::host_launch>();
  check_adamw<seam::thread_launch<8>>();
}

TEST_CASE("sgd over all parameters is momentum and decay") {
  parameters p(lengths), expected(lengths);
  fl::device_context c;
  const fl::sgd_factors plain{0.1f, 0.9f, 0, 0.5f}, decaying{0.1f, 0.9f, 0.01f, 0.5f};
  fl::sgd_all<fl::host_launch>(c, p.list, plain, decaying);
  for (const fl::update_item& i : expected.items)
    for (i64 k = 0; k < i.count; ++k) {
      const float decay = i.decays ? 0.01f : 0.0f;
      i.m[k] = 0.9f * i.m[k] + (i.gradient[k] * 0.5f + decay * i.weight[k]);
      i.weight[k] = i.weight[k] - 0.1f * i.m[k];
    }
  CHECK(p.weight == expected.weight);
  CHECK(p.m == expected.m);
  CHECK(p.v == expected.v);
}

TEST_CASE("sums of squares have the bits of the CPU's") {
  check_squares<fl::host_launch>();
  check_squares<seam::thread_launch<64>>();
}

TEST_CASE("no parameter, and parameters without elements") {
  parameters none(std::vector<i64>{}), empty(std::vector<i64>{0, 5, 0});
  fl::device_context c;
  fl::adamw_all<fl::host_launch>(c, none.list, {}, {});
  std::vector<double> sums(1), out(3, -1);
  fl::sum_of_squares_all<fl::host_launch>(c, none.list, out.data(), sums.data());
  CHECK(out[0] == -1);
  fl::sum_of_squares_all<fl::host_launch>(c, empty.list, out.data(), sums.data());
  CHECK(out == std::vector<double>{0, fl::sum_of_squares(empty.items[1].gradient, 5), 0});
}

TEST_CASE("vectors: sums, running statistics, infinities anywhere") {
  fl::device_context c;
  for (std::size_t n : {1u, 4u, 7u, 1000u}) {
    const numbers a = seam::drawn(n, 1), b = seam::drawn(n, 2);
    numbers sum(n), statistic = a, expected(n), kept(n);
    for (std::size_t i = 0; i < n; ++i) expected[i] = a[i] + b[i], kept[i] = 0.75f * a[i] + b[i];
    fl::add_vectors<fl::host_launch>(c, sum.data(), a.data(), b.data(), i64(n));
    CHECK(sum == expected);
    numbers over = a;
    fl::add_vectors<fl::host_launch>(c, over.data(), over.data(), b.data(), i64(n));
    CHECK(over == expected);
    fl::decay_vector<fl::host_launch>(c, statistic.data(), b.data(), i64(n), 0.75);
    CHECK(statistic == kept);
    fl::u32 found = 0;
    fl::search_non_finite<fl::host_launch>(c, a.data(), i64(n), &found);
    CHECK(found == 0);
    for (std::size_t at = 0; at < n; at += n / 5 + 1)
      for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
        numbers x = a;
        x[at] = bad;
        found = 0;
        fl::search_non_finite<fl::host_launch>(c, x.data(), i64(n), &found);
        CHECK(found == 1);
      }
  }
}
