// SPDX-License-Identifier: Apache-2.0
// A bigram table: how often each token follows each other one, add-one smoothed. What a model must beat before it has
// learnt more than pairs.
#pragma once

#include <cmath>
#include <vector>

#include "text_data.hpp"

namespace fusionllm::inline v0 {

class bigram_table {
 public:
  /// Errors: errc::config when vocabulary is not 1 to 4096 (a table is its square).
  explicit bigram_table(i64 vocabulary) : vocabulary_(vocabulary) {
    if (vocabulary < 1 || vocabulary > 4096) fail(errc::config, "a bigram table of ", vocabulary, " tokens, expected 1 to 4096");
    pairs_.assign(std::size_t(vocabulary * vocabulary), 0);
    firsts_.assign(std::size_t(vocabulary), 0);
  }

  void count(u32 first, u32 next) {
    ++pairs_[std::size_t(i64(first) * vocabulary_ + i64(next))];
    ++firsts_[first];
  }
  /// -ln of the probability of `next` after `first`.
  double nats(u32 first, u32 next) const {
    const double pair = double(pairs_[std::size_t(i64(first) * vocabulary_ + i64(next))]);
    return -std::log((pair + 1) / (double(firsts_[first]) + double(vocabulary_)));
  }

 private:
  i64 vocabulary_;
  std::vector<u64> pairs_, firsts_;
};

/// Mean nats per token on the held-out part of `data` of a table counted on the rest; NaN where nothing is held out.
/// Errors: errc::config when the vocabulary of the file is above 4096.
inline double bigram_loss(const text_data& data) {
  const token_file& f = data.file();
  bigram_table table(f.vocabulary());
  if (data.validation_tokens() < 2) return std::nan("");
  for (i64 i = 0; i + 1 < data.train_tokens(); ++i) table.count(f[i], f[i + 1]);
  double sum = 0;
  for (i64 i = data.train_tokens(); i + 1 < f.count(); ++i) sum += table.nats(f[i], f[i + 1]);
  return sum / double(data.validation_tokens() - 1);
}

}  // namespace fusionllm::inline v0
