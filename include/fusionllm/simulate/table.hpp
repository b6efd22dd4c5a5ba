// SPDX-License-Identifier: Apache-2.0
// Plain-text tables: columns as wide as their widest entry, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace fusionllm::inline v0 {

class text_table {
 public:
  /// A heading that begins with '>' makes a column of numbers, to the right.
  explicit text_table(std::vector<std::string> headings) {
    for (std::string& h : headings) {
      right_.push_back(h.size() > 1 && h[0] == '>');
      if (right_.back()) h.erase(0, 1);
    }
    rows_.push_back(std::move(headings));
  }
  text_table& row(std::vector<std::string> cells) {
    cells.resize(right_.size());
    rows_.push_back(std::move(cells));
    return *this;
  }
  bool empty() const { return rows_.size() == 1; }

  std::string text() const {
    std::vector<std::size_t> width(right_.size());
    for (const auto& r : rows_)
      for (std::size_t c = 0; c < r.size(); ++c) width[c] = r[c].size() > width[c] ? r[c].size() : width[c];
    std::string out;
    for (const auto& r : rows_) {
      std::string line;
      for (std::size_t c = 0; c < r.size(); ++c) {
        const std::string space(width[c] - r[c].size(), ' ');
        line += (c ? "  " : "") + (right_[c] ? space + r[c] : r[c] + space);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fusionllm::inline v0
