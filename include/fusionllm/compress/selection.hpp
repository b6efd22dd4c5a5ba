// SPDX-License-Identifier: Apache-2.0
// Exact selection of the k entries of largest magnitude, the lowest index first among equals. The result is a function
// of the input alone: no thread, sample or instruction set changes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "../core/team.hpp"
#include "../core/types.hpp"
#include "cut.hpp"
#include "scan.hpp"

namespace fusionllm::inline v0 {

/// Holds the scratch memory of its selections, which grows to its size once.
class top_k_selector {
 public:
  top_k_selector() : top_k_selector(best_instruction_set()) {}
  explicit top_k_selector(instruction_set set) : scan_(&scan_with(set)) {}

  /// Positions, ascending, of the min(k, n) largest |x[i]|; n below 2^32. Infinities and NaNs count as the largest.
  /// A team of null is the calling thread alone.
  void select(const float* x, i64 n, i64 k, thread_team* team, std::vector<u32>& positions) {
    k = std::clamp<i64>(k, 0, n);
    positions.resize(std::size_t(k));
    if (k == n) std::iota(positions.begin(), positions.end(), u32(0));
    if (k == 0 || k == n) return;
    if (n < 1 << 15) {
      u32 guess = 0;
      select_line(x, n, k, 0, guess, positions.data());
    } else if (k > n / 8 || !select_sampled(x, n, k, team, positions.data())) {
      select_counted(x, n, k, team, positions.data());
    }
  }

  /// The same for each row of a (rows, columns) matrix, min(k, columns) a row; positions count from the first row.
  void select_rows(const float* x, i64 rows, i64 columns, i64 k, thread_team* team, std::vector<u32>& positions) {
    if (rows == 1) return select(x, columns, k, team, positions);
    k = std::clamp<i64>(k, 0, columns);
    positions.resize(std::size_t(rows * k));
    if (k == columns) std::iota(positions.begin(), positions.end(), u32(0));
    if (k == 0 || k == columns) return;
    auto lines = [&](i64 begin, i64 end) {
      u32 guess = 0;  // rows of one tensor are alike: each row starts from the last one's cut
      for (i64 row = begin; row < end; ++row)
        select_line(x + row * columns, columns, k, u32(row * columns), guess, positions.data() + row * k);
    };
    if (team == nullptr || rows * columns < 1 << 15) return lines(0, rows);
    team->split(rows, 1, lines);
  }

 private:
  static constexpr i64 sample_size = 1 << 14;

  void select_line(const float* x, i64 n, i64 k, u32 base, u32& guess, u32* positions) const {
    const scan_passes& scan = *scan_;
    const magnitude_cut cut = find_cut([&](u32 key) { return scan.count(x, n, key); }, n, k, scan.largest(x, n), guess);
    guess = cut.key + 1;
    scan.keep(x, n, base, cut, positions);
  }

  template <class F>
  static void on_all(thread_team* team, F&& f) {
    team == nullptr ? f(0, 1) : team->run(f);
  }
  static i64 part(i64 n, int rank, int size) { return rank == size ? n : n / 16 * rank / size * 16; }

  /// A key that about k, and with near certainty at least k, of n keys reach: from a sample at scattered positions.
  u32 sampled_key(const float* x, i64 n, i64 k) {
    sample_.resize(std::size_t(sample_size));
    u64 at = 0;
    for (float& s : sample_) {
      at += 0x9E3779B97F4A7C15u;  // the golden ratio's multiples fill [0, 1) evenly and meet no stride of the tensor
      s = x[((at >> 32) * u64(n)) >> 32];
    }
    const double expected = double(sample_size) * double(k) / double(n);
    i64 rank = i64(expected) + 8;
    for (i64 root = 1; double(root * root) < 16 * expected; ++root) ++rank;  // four standard deviations
    const magnitude_cut cut = find_cut([&](u32 key) { return scan_->count(sample_.data(), sample_size, key); },
                                       sample_size, rank, scan_->largest(sample_.data(), sample_size), 0);
    return cut.ties > 0 ? cut.key : cut.key + 1;
  }

  /// One pass that collects candidates, then a selection among them. False where the sample misled it.
  bool select_sampled(const float* x, i64 n, i64 k, thread_team* team, u32* positions) {
    const u32 key = sampled_key(x, n, k);
    const int size = team == nullptr ? 1 : team->size();
    const i64 capacity = (std::min)(2 * k + 4 * sample_size, n);
    reserve(size, capacity);
    on_all(team, [&](int rank, int members) {
      const i64 begin = part(n, rank, members), end = part(n, rank + 1, members);
      const std::size_t own = std::size_t(rank * capacity);
      found_[std::size_t(rank)] = scan_->collect(x + begin, end - begin, u32(begin), key, capacity,
                                                 candidate_positions_.get() + own, candidate_values_.get() + own);
    });
    i64 total = 0;
    for (int rank = 0; rank < size; ++rank) {
      const i64 found = found_[std::size_t(rank)];
      if (found < 0) return false;
      if (rank > 0) {
        std::copy_n(candidate_positions_.get() + rank * capacity, found, candidate_positions_.get() + total);
        std::copy_n(candidate_values_.get() + rank * capacity, found, candidate_values_.get() + total);
      }
      total += found;
    }
    if (total < k) return false;
    if (total == k) {
      std::copy_n(candidate_positions_.get(), k, positions);
      return true;
    }
    u32 guess = 0;
    select_line(candidate_values_.get(), total, k, 0, guess, positions);
    for (i64 i = 0; i < k; ++i) positions[i] = candidate_positions_[std::size_t(positions[i])];
    return true;
  }

  /// Counting passes over the whole input: for dense selections, and for inputs of few distinct values.
  void select_counted(const float* x, i64 n, i64 k, thread_team* team, u32* positions) {
    const int size = team == nullptr ? 1 : team->size();
    reserve(size, 0);
    const auto counts = [&](u32 key) {
      on_all(team, [&](int rank, int members) {
        const i64 begin = part(n, rank, members);
        found_[std::size_t(rank)] = scan_->count(x + begin, part(n, rank + 1, members) - begin, key);
      });
    };
    const auto count = [&](u32 key) {
      counts(key);
      return std::accumulate(found_.begin(), found_.begin() + size, i64(0));
    };
    on_all(team, [&](int rank, int members) {
      const i64 begin = part(n, rank, members);
      found_[std::size_t(rank)] = scan_->largest(x + begin, part(n, rank + 1, members) - begin);
    });
    const u32 largest = u32(*std::max_element(found_.begin(), found_.begin() + size));
    const magnitude_cut cut = find_cut(count, n, k, largest, sampled_key(x, n, (std::min)(k, n - n / 16)));
    counts(cut.key);
    reached_ = found_;
    counts(cut.key + 1);
    i64 begin_at = 0, ties = cut.ties;
    for (int rank = 0; rank < size; ++rank) {  // each member learns its ties and where its positions begin
      const std::size_t r = std::size_t(rank);
      const i64 equal = (std::min)(reached_[r] - found_[r], ties);
      ties -= equal;
      reached_[r] = equal;
      const i64 mine = found_[r] + equal;
      found_[r] = begin_at;
      begin_at += mine;
    }
    on_all(team, [&](int rank, int members) {
      const i64 begin = part(n, rank, members);
      scan_->keep(x + begin, part(n, rank + 1, members) - begin, u32(begin), {cut.key, reached_[std::size_t(rank)]},
                  positions + found_[std::size_t(rank)]);
    });
  }

  void reserve(int size, i64 capacity) {
    if (found_.size() < std::size_t(size)) found_.resize(std::size_t(size));
    if (candidate_room_ >= size * capacity) return;
    candidate_room_ = size * capacity;
    candidate_positions_.reset(new u32[std::size_t(candidate_room_)]);
    candidate_values_.reset(new float[std::size_t(candidate_room_)]);
  }

  const scan_passes* scan_;
  std::vector<float> sample_;
  std::vector<i64> found_;                      // per member
  std::vector<i64> reached_;                    // per member
  std::unique_ptr<u32[]> candidate_positions_;  // one region a member
  std::unique_ptr<float[]> candidate_values_;
  i64 candidate_room_ = 0;
};

}  // namespace fusionllm::inline v0
