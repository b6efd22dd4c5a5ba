// SPDX-License-Identifier: Apache-2.0
// Joins the bytes of one piece to tokens: of all neighbours that join, those of the lowest rank first, from left to
// right, until none do. Short pieces are searched anew each round; long ones keep, for each rank, where its pairs are,
// so that the time of a piece of n bytes is near n whatever it holds.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <span>

#include "bpe_cache.hpp"
#include "bpe_vocabulary.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Memory of one thread that merges.
class bpe_merger {
 public:
  /// `repeats`: words are expected to come again, as in a long text.
  bpe_merger(const bpe_vocabulary& v, bool repeats) : vocabulary_(v), merges_(v.merges()) {
    if (repeats) cache_.emplace();
  }

  /// The tokens of a piece that is not empty; they rest until the next call. Errors: errc::data for 2^31 bytes or more.
  std::span<const u32> operator()(std::string_view piece) {
    if (!cache_ || piece.size() > bpe_cache::longest)
      return piece.size() <= short_piece ? merge_short(piece) : merge_long(piece);
    auto place = cache_->find(piece);
    if (place.hit()) return place.tokens();
    const auto tokens = merge_short(piece);
    place.put(tokens);
    return tokens;
  }

 private:
  static constexpr std::size_t short_piece = 64;
  static constexpr u32 gone = ~u32(0);  // a token that was joined to the one before it

  std::span<const u32> merge_short(std::string_view piece) {
    std::size_t n = piece.size();
    for (std::size_t i = 0; i < n; ++i) few_[i] = vocabulary_.of_byte(static_cast<unsigned char>(piece[i]));
    for (std::size_t i = 0; i + 1 < n; ++i) ranks_[i] = merges_.rank(few_[i], few_[i + 1]);
    while (n > 1) {
      const u32 lowest = *std::min_element(ranks_, ranks_ + n - 1);
      if (lowest == merge_table::never) break;
      n = join_all(n, lowest);
    }
    return {few_, n};
  }

  /// One round over a short piece of n tokens; how many are left.
  std::size_t join_all(std::size_t n, u32 rank) {
    std::size_t to = 0;
    bool joined = false;  // the token before `to`
    for (std::size_t from = 0; from < n; ++to) {
      const bool join = from + 1 < n && ranks_[from] == rank;
      const u32 token = join ? merges_[rank].result : few_[from];
      if (to > 0 && (join || joined)) ranks_[to - 1] = merges_.rank(few_[to - 1], token);
      from += join ? 2 : 1;
      if (from < n) ranks_[to] = ranks_[from - 1];
      few_[to] = token;
      joined = join;
    }
    return to;
  }

  std::span<const u32> merge_long(std::string_view piece) {
    if (piece.size() > std::size_t(INT32_MAX))
      fail(errc::data, "a word of ", piece.size(), " bytes, expected ", INT32_MAX, " at most: it is no text");
    const u32 n = u32(piece.size());
    tokens_.resize(n + 1), next_.resize(n + 1), before_.resize(n + 1);
    at_rank_.resize(merges_.size());
    for (u32 i = 0; i < n; ++i) tokens_[i] = vocabulary_.of_byte(static_cast<unsigned char>(piece[i]));
    tokens_[n] = gone;
    for (u32 i = 0; i <= n; ++i) next_[i] = i + 1, before_[i] = i - 1;
    for (u32 i = 0; i + 1 < n; ++i) note(i, i + 1);
    while (!ranks_to_do_.empty()) {
      const u32 rank = ranks_to_do_.top();
      ranks_to_do_.pop();
      join_all_of(rank, n);
    }
    u32 count = 0;
    for (u32 i = 0; i < n; i = next_[i]) tokens_[count++] = tokens_[i];
    return {tokens_.data(), count};
  }

  /// Remembers the pair of the tokens at `left` and `right`.
  void note(u32 left, u32 right) {
    const u32 rank = merges_.rank(tokens_[left], tokens_[right]);
    if (rank == merge_table::never) return;
    if (at_rank_[rank].empty()) ranks_to_do_.push(rank);
    at_rank_[rank].push_back(left);
  }

  void join_all_of(u32 rank, u32 n) {
    const auto [left, right, result] = merges_[rank];
    now_.clear();
    now_.swap(at_rank_[rank]);
    if (!std::is_sorted(now_.begin(), now_.end())) std::sort(now_.begin(), now_.end());
    std::size_t joined = 0;
    for (const u32 at : now_) {
      const u32 other = next_[at];  // a pair that was noted may have gone since
      if (tokens_[at] != left || other >= n || tokens_[other] != right) continue;
      tokens_[at] = result;
      tokens_[other] = gone;
      next_[at] = next_[other];
      before_[next_[at]] = at;
      now_[joined++] = at;
    }
    for (std::size_t i = 0; i < joined; ++i) {
      const u32 at = now_[i];
      if (at > 0 && (i == 0 || before_[at] != now_[i - 1])) note(before_[at], at);
      if (next_[at] < n) note(at, next_[at]);
    }
  }

  const bpe_vocabulary& vocabulary_;
  const merge_table& merges_;
  std::optional<bpe_cache> cache_;
  u32 few_[short_piece], ranks_[short_piece];
  std::vector<u32> tokens_, next_, before_, now_;  // of a long piece: by position of a token's first byte
  std::vector<std::vector<u32>> at_rank_;
  std::priority_queue<u32, std::vector<u32>, std::greater<>> ranks_to_do_;
};

}  // namespace detail

}  // namespace fusionllm::inline v0
