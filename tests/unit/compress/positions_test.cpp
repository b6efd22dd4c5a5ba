// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/positions.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::position_coding;
using fl::u32;

namespace {

constexpr position_coding codings[] = {position_coding::bitmap, position_coding::elias_fano};

std::vector<u32> choose(i64 n, i64 k, unsigned seed) {
  std::mt19937_64 g(seed);
  std::vector<u32> out;
  i64 left = k;
  for (i64 i = 0; i < n && left > 0; ++i)
    if (i64(g() % std::uint64_t(n - i)) < left) {
      out.push_back(u32(i));
      --left;
    }
  return out;
}

std::vector<std::byte> written(position_coding coding, const std::vector<u32>& p, i64 n) {
  std::vector<std::byte> bytes(std::size_t(fl::position_bytes(coding, n, i64(p.size()))), std::byte(0xAA));
  fl::write_positions(coding, p, n, bytes.data());
  return bytes;
}

bool reads_as(position_coding coding, const std::vector<std::byte>& bytes, i64 n, const std::vector<u32>& p) {
  std::vector<u32> q(p.size());
  fl::read_positions(coding, bytes.data(), n, i64(p.size()), q.data());
  return p == q;
}

}  // namespace

TEST_CASE("positions arrive as they were, for every density") {
  for (i64 n : {1, 2, 7, 8, 9, 63, 64, 65, 100, 1000, 4097})
    for (i64 k : {i64(1), i64(2), n / 100, n / 10, n / 4, n / 2, n - 1, n})
      for (auto coding : codings) {
        if (k < 1 || k > n) continue;
        const auto p = choose(n, k, unsigned(n + k));
        REQUIRE(reads_as(coding, written(coding, p, n), n, p));
        std::vector<u32> first, last;
        for (i64 i = 0; i < k; ++i) first.push_back(u32(i)), last.push_back(u32(n - k + i));
        REQUIRE(reads_as(coding, written(coding, first, n), n, first));
        REQUIRE(reads_as(coding, written(coding, last, n), n, last));
      }
}

TEST_CASE("tensors at the end of 32-bit positions") {
  const i64 n = 0xFFFFFFFF;
  for (const std::vector<u32>& p : {std::vector<u32>{0}, {0xFFFFFFFEu}, {0, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFEu}})
    CHECK(reads_as(position_coding::elias_fano, written(position_coding::elias_fano, p, n), n, p));
}

TEST_CASE("no positions take no bytes") {
  CHECK(fl::best_position_coding(100, 0) == position_coding::elias_fano);
  CHECK(fl::position_bytes(position_coding::elias_fano, 100, 0) == 0);
  fl::read_positions(position_coding::elias_fano, nullptr, 100, 0, nullptr);
  CHECK(fl::best_position_coding(0, 0) == position_coding::dense);
  CHECK(fl::best_position_coding(5, 5) == position_coding::dense);
}

TEST_CASE("Elias-Fano is within half a bit of the entropy and wins below a density of 1/4") {
  const i64 n = 1 << 20;
  for (i64 k : {n / 1000, n / 100, n / 30, n / 10, n / 5}) {
    const double p = double(k) / double(n);
    const double least = (-p * std::log2(p) - (1 - p) * std::log2(1 - p)) / p;
    const double bits = 8.0 * double(fl::position_bytes(position_coding::elias_fano, n, k)) / double(k);
    CHECK(bits < least + 0.65);
    CHECK(fl::best_position_coding(n, k) == position_coding::elias_fano);
  }
  CHECK(fl::best_position_coding(n, n / 3) == position_coding::bitmap);
  i64 before = 0;  // the budget's search needs sizes that never fall
  for (i64 k = 1; k < 4096; ++k) {
    const i64 bytes = fl::position_bytes(fl::best_position_coding(4096, k), 4096, k);
    CHECK(bytes >= before);
    before = bytes;
  }
}

TEST_CASE("random and damaged bytes are refused or give ascending positions inside") {
  std::mt19937 g(3);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const i64 n = 1 + i64(g() % 300), k = 1 + i64(g()) % n;
    const auto coding = codings[g() % 2];
    auto bytes = written(coding, choose(n, k, unsigned(round)), n);
    if (round % 4 == 0) {
      for (auto& b : bytes) b = std::byte(g());
    } else {
      bytes[g() % bytes.size()] ^= std::byte(1 << (g() % 8));
    }
    std::vector<u32> p(static_cast<std::size_t>(k));
    try {
      fl::read_positions(coding, bytes.data(), n, k, p.data());
      CHECK(std::is_sorted(p.begin(), p.end()));
      CHECK(std::adjacent_find(p.begin(), p.end()) == p.end());
      CHECK(i64(p.back()) < n);
      CHECK(written(coding, p, n) == bytes);  // one set of positions has one encoding
      ++accepted;
    } catch (const fl::error& e) {
      CHECK(e.code() == fl::errc::protocol);
      ++refused;
    }
  }
  CHECK(accepted > 0);
  CHECK(refused > 0);
}
