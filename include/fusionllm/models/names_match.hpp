// SPDX-License-Identifier: Apache-2.0
// Finds a model's parameters among the tensors of a file, by a table of names: which tensor each comes from and how it
// lies there, and in words what is missing, left over or of another shape. Values are not looked at.
#pragma once

#include <unordered_map>
#include <vector>

#include "../graph/node.hpp"
#include "names.hpp"

namespace fusionllm::inline v0 {

/// A tensor of a file, as matching sees it.
struct weight_in_file {
  std::string_view name;
  std::span<const u64> shape;
};

/// Where a parameter comes from.
struct weight_source {
  int tensor = -1;          ///< of the file; -1: missing
  bool transposed = false;  ///< the file has (in, out), and more rows are more columns there
  std::vector<int> equals;  ///< other tensors of the file that must begin with the same values
};

struct weight_match {
  std::vector<weight_source> sources;  ///< by parameter
  std::vector<std::string> missing;    ///< names that the file should have
  std::vector<std::string> unused;     ///< names of the file that no parameter has
  std::vector<std::string> wrong;      ///< shapes: name, found, expected
  std::vector<std::string> notes;      ///< what was decided
};

namespace detail {

class weight_matcher {
 public:
  weight_matcher(const weight_names& names, std::span<const parameter_info> params, std::span<const weight_in_file> file)
      : names_(names), params_(params), file_(file) {
    for (std::size_t i = 0; i < file.size(); ++i) at_.emplace(file[i].name, int(i));
    used_.resize(file.size());
  }

  weight_match run() {
    found_.sources.resize(params_.size());
    rules_.resize(params_.size());
    for (std::size_t i = 0; i < params_.size(); ++i) find(i);
    decide_orientation();
    for (std::size_t i = 0; i < params_.size(); ++i)
      for (std::size_t k = 0; found_.sources[i].tensor >= 0 && k <= found_.sources[i].equals.size(); ++k) check_shape(i, k);
    for (std::size_t i = 0; i < file_.size(); ++i)
      if (!used_[i] && !ignored(file_[i].name)) found_.unused.emplace_back(file_[i].name);
    return std::move(found_);
  }

 private:
  static constexpr weight_rule same_rule{"*"};

  void find(std::size_t i) {
    const std::string_view ours = params_[i].path.view();
    bool any = false;
    for (const weight_rule& r : names_.rules) {
      const std::string n = name_by_rule(r, ours);
      if (n.empty()) continue;
      any = true;
      look_up(i, r, n);
    }
    if (!any) look_up(i, same_rule, std::string(ours));
    if (found_.sources[i].tensor < 0) found_.missing.push_back(name_in_file(names_, ours).text);
  }
  void look_up(std::size_t i, const weight_rule& r, const std::string& n) {
    if (!r.bare && !names_.prefix.empty()) look_up_exactly(i, r, std::string(names_.prefix) + n);
    look_up_exactly(i, r, n);
  }
  void look_up_exactly(std::size_t i, const weight_rule& r, const std::string& n) {
    const auto it = at_.find(n);
    if (it == at_.end()) return;
    weight_source& s = found_.sources[i];
    used_[std::size_t(it->second)] = true;
    if (s.tensor >= 0) return s.equals.push_back(it->second);
    s.tensor = it->second;
    s.transposed = r.transposed && params_[i].dims.rank == 2;
    rules_[i] = &r;
  }

  // Some programs keep the matrices that the table calls transposed as (out, in). A square one cannot tell: it lies as
  // the others do.
  void decide_orientation() {
    std::size_t as_told = 0, plain = 0;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const weight_source& s = found_.sources[i];
      if (s.tensor < 0 || !s.transposed || params_[i].dims.d[0] == params_[i].dims.d[1]) continue;
      if (fits(i, s.tensor, true)) ++as_told;
      else if (fits(i, s.tensor, false)) ++plain;
    }
    if (plain == 0 || as_told > 0) return;
    for (auto& s : found_.sources) s.transposed = false;
    found_.notes.push_back("matrices are (out, in) in this file, and are not transposed");
  }

  // The k-th of a parameter's tensors; 0 is the one that is read.
  void check_shape(std::size_t i, std::size_t k) {
    const weight_source& s = found_.sources[i];
    const int t = k == 0 ? s.tensor : s.equals[k - 1];
    const weight_in_file& f = file_[std::size_t(t)];
    if (!fits(i, t, s.transposed)) {
      found_.wrong.push_back(std::string(f.name) + " is " + text(f.shape) + ", the model's " + std::string(params_[i].path.view())
                             + " takes " + text(expected(i, s.transposed))
                             + (s.transposed ? ", the transpose of its own shape" : ""));
      return;
    }
    const u64 rows = f.shape.empty() ? 0 : f.shape[s.transposed ? 1 : 0];
    if (k == 0 && params_[i].dims.rank > 0 && rows > u64(params_[i].dims.d[0]))
      found_.notes.push_back(std::string(f.name) + " has " + std::to_string(rows) + " rows: the first "
                             + std::to_string(params_[i].dims.d[0]) + " are taken");
  }

  bool fits(std::size_t i, int tensor, bool transposed) const {
    const auto& shape = file_[std::size_t(tensor)].shape;
    const std::vector<u64> wanted = expected(i, transposed);
    if (shape.size() != wanted.size()) return false;
    const std::size_t row = transposed ? 1 : 0;
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (!(rules_[i]->padded && k == row ? shape[k] >= wanted[k] : shape[k] == wanted[k])) return false;
    return true;
  }
  std::vector<u64> expected(std::size_t i, bool transposed) const {
    const extents& e = params_[i].dims;
    std::vector<u64> d;
    for (int k = 0; k < e.rank; ++k) d.push_back(u64(e.d[std::size_t(transposed ? e.rank - 1 - k : k)]));
    return d;
  }
  static std::string text(std::span<const u64> shape) {
    std::string s = "(";
    for (u64 d : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(d);
    return s + ")";
  }

  bool ignored(std::string_view n) const {
    for (std::string_view pattern : names_.ignored) {
      if (fits_pattern(pattern, n)) return true;
      if (!names_.prefix.empty() && n.substr(0, names_.prefix.size()) == names_.prefix
          && fits_pattern(pattern, n.substr(names_.prefix.size())))
        return true;
    }
    return false;
  }

  const weight_names& names_;
  std::span<const parameter_info> params_;
  std::span<const weight_in_file> file_;
  std::unordered_map<std::string_view, int> at_;
  std::vector<bool> used_;
  std::vector<const weight_rule*> rules_;
  weight_match found_;
};

}  // namespace detail

inline weight_match match_weights(const weight_names& names, std::span<const parameter_info> params,
                                  std::span<const weight_in_file> file) {
  return detail::weight_matcher(names, params, file).run();
}

}  // namespace fusionllm::inline v0
