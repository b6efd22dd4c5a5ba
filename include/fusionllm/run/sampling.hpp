// SPDX-License-Identifier: Apache-2.0
// How the next token is drawn from logits, and where a text that is being written ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

struct draw_settings {
  double temperature = 1;  ///< of the softmax; 0: the likeliest token, of equals the lowest
  i64 top_k = 0;           ///< draw among so many likeliest tokens; 0: all
  double top_p = 1;        ///< draw among the fewest likeliest tokens that hold this probability (Holtzman et al., arXiv 1904.09751)
};

/// Draws a token from softmax(logits / temperature), cut to top_k and then to top_p. `chance` in [0, 1) decides. No logit is
/// NaN or +infinity, and one at least is finite.
inline i64 draw_token(std::span<const double> logits, const draw_settings& s, double chance) {
  const auto likelier = [&](i64 a, i64 b) {
    const double x = logits[std::size_t(a)], y = logits[std::size_t(b)];
    return x > y || (x == y && a < b);
  };
  std::vector<i64> order(logits.size());
  std::iota(order.begin(), order.end(), i64(0));
  if (s.temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);
  if (s.top_k > 0 && s.top_k < i64(order.size())) {
    std::partial_sort(order.begin(), order.begin() + s.top_k, order.end(), likelier);
    order.resize(std::size_t(s.top_k));
  } else {
    std::sort(order.begin(), order.end(), likelier);
  }
  std::vector<double> weight;
  double sum = 0;
  for (i64 token : order) {
    weight.push_back(std::exp((logits[std::size_t(token)] - logits[std::size_t(order[0])]) / s.temperature));
    sum += weight.back();
  }
  if (s.top_p < 1) {
    std::size_t n = 0;
    double held = 0;
    while (n < order.size() && (n == 0 || held < s.top_p * sum)) held += weight[n++];
    order.resize(n);
    sum = held;
  }
  double left = chance * sum;
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    if ((left -= weight[i]) < 0) return order[i];
  return order.back();
}

/// Passes a growing text on until `stop` occurs in it, which is left out, as is all behind it. An empty `stop` never does.
class text_until {
 public:
  explicit text_until(std::string stop) : stop_(std::move(stop)) {}

  bool ended() const { return ended_; }
  /// What may be shown now: the beginning of what may become `stop` is held back.
  std::string add(std::string_view more) {
    if (ended_) return "";
    held_ += more;
    if (!stop_.empty())
      if (const auto at = held_.find(stop_); at != std::string::npos) {
        ended_ = true;
        held_.resize(at);
        return std::exchange(held_, {});
      }
    std::size_t keep = (std::min)(held_.size(), stop_.empty() ? 0 : stop_.size() - 1);
    while (keep > 0 && stop_.compare(0, keep, held_, held_.size() - keep, keep) != 0) --keep;
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  std::string finish() { return std::exchange(held_, {}); }

 private:
  std::string stop_, held_;
  bool ended_ = false;
};

}  // namespace fusionllm::inline v0
