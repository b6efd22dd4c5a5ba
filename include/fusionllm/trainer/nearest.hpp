// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...": the known name that is nearest to an unknown one.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fusionllm::inline v0 {

/// Insertions, deletions, replacements and swaps of neighbours that make b of a (Damerau, 1964, adjacent swaps only).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = (std::min)({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = (std::min)(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

/// Keeps the nearest of the names it is shown, if it is near enough to be meant.
class nearest_name {
 public:
  explicit nearest_name(std::string_view wanted) : wanted_(wanted.substr(0, 64)) {}
  void offer(std::string_view known) {
    const std::size_t d = edit_distance(wanted_, known);
    if (d < distance_) distance_ = d, best_ = known;
  }
  /// The nearest, empty if none is near enough.
  std::string_view name() const { return distance_ > 1 + wanted_.size() / 4 ? std::string_view() : best_; }
  /// ": did you mean 'x'?", or nothing.
  std::string text() const { return name().empty() ? "" : ": did you mean '" + std::string(name()) + "'?"; }

 private:
  std::string_view wanted_, best_;
  std::size_t distance_ = 1000;
};

/// The nearest of names that are joined by `between`.
inline std::string nearest_text(std::string_view wanted, std::string_view names, char between) {
  nearest_name n(wanted);
  while (!names.empty()) {
    const auto end = (std::min)(names.find(between), names.size());
    n.offer(names.substr(0, end));
    names.remove_prefix((std::min)(end + 1, names.size()));
  }
  return n.text();
}

}  // namespace fusionllm::inline v0
