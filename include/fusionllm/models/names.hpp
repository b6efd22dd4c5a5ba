// SPDX-License-Identifier: Apache-2.0
// How the names of a model's parameters are related to those in files of weights, as a table that the model holds:
//
//   static constexpr fl::weight_names file_names = fl::gpt2_names;
//
// A model without one has its own names in files. Names in a table are patterns (core/pattern.hpp) with stars only.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "../core/pattern.hpp"

namespace fusionllm::inline v0 {

/// A name, or a family of names. Of several rules for one name the first is the one that is written; a file may have
/// any of them, and what it has of them must be equal.
struct weight_rule {
  std::string_view ours;      ///< in the model, as `graph` prints it: "h.*.attn.c_attn.weight"
  std::string_view theirs{};  ///< in files, with the same stars in the same order; empty: as `ours`
  bool bare = false;          ///< never with the prefix
  bool transposed = false;    ///< a matrix that is (out, in) here is (in, out) there
  bool padded = false;        ///< a file may have more rows, such as of unused tokens; they are dropped
};

struct weight_names {
  std::string_view prefix{};                    ///< of names in files: written, and where a file lacks it not missed
  std::span<const weight_rule> rules{};         ///< for all other names: the same name
  std::span<const std::string_view> ignored{};  ///< what files may have that is no weight, without the prefix
};

inline constexpr weight_names same_names{};

/// `Model::file_names`, which has static storage; `same_names` where there is none.
template <class Model>
constexpr const weight_names& weight_names_of() {
  if constexpr (requires { Model::file_names; }) return Model::file_names;
  else return same_names;
}

/// The name that `rule` gives to `ours`, without the prefix; empty where the rule is for other names.
inline std::string name_by_rule(const weight_rule& rule, std::string_view ours) {
  std::string_view stars[8];
  if (!fits_pattern(rule.ours, ours, stars)) return {};
  if (rule.theirs.empty()) return std::string(ours);
  std::string result;
  std::size_t next = 0;
  for (char c : rule.theirs) {
    if (c == '*' && next < 8) result += stars[next++];
    else result += c;
  }
  return result;
}

/// The rule by which `ours` is written, and its full name in the file.
struct written_name {
  std::string text;
  bool transposed = false;
};
inline written_name name_in_file(const weight_names& names, std::string_view ours) {
  for (const weight_rule& r : names.rules)
    if (std::string n = name_by_rule(r, ours); !n.empty())
      return {r.bare ? n : std::string(names.prefix) + n, r.transposed};
  return {std::string(names.prefix) + std::string(ours), false};
}

}  // namespace fusionllm::inline v0
