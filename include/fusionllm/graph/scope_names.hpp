// SPDX-License-Identifier: Apache-2.0
// Full names, dotted paths of scopes, unique within a model: of siblings with one name the later ones get a suffix.
// Whoever asks for names must ask in the order of `arrange`, since it decides which sibling is the later one.
#pragma once

#include "tracer.hpp"

namespace fusionllm::inline v0::detail {

/// Full names of scopes, given when they are first asked for.
class scope_names {
 public:
  constexpr explicit scope_names(trace& t)
      : t_(t), path_(t.scopes.size()), hash_(t.scopes.size(), 0), slots_(slots_for(t)), taken_(slots_, 0) {}

  constexpr const name& of(int scope) {
    if (scope < 0) return root_;
    const std::size_t s = std::size_t(scope);
    name& path = path_[s];
    if (hash_[s] != 0) return path;
    const trace::scope_record& r = t_.scopes[s];
    path = of(r.parent);
    const u8 parent_length = path.length;
    const u64 parent_hash = r.parent < 0 ? no_name : hash_[r.parent];
    const std::string_view own = t_.view(r.name);
    if (!append(path, own))
      hash_[s] = no_name;
    else if (own.empty()) {
      path.put_number(r.index);
      hash_[s] = hashed(parent_hash, path.view().substr(parent_length));
    } else {
      const u8 plain = path.length;
      hash_[s] = hashed(parent_hash, path.view().substr(parent_length));
      for (unsigned k = 1; !take(hash_[s]); ++k) {
        path.shorten(plain);
        path.put('_');
        path.put_number(k);
        hash_[s] = hashed(parent_hash, path.view().substr(parent_length));
      }
    }
    return path;
  }

  /// A parameter's full name.
  constexpr name of(const trace::parameter_record& p, std::size_t number) {
    name path = of(p.scope);
    const u8 from = path.length;
    const u64 scope_hash = p.scope < 0 ? no_name : hash_[p.scope];
    if (append(path, t_.view(p.leaf)) && !take(hashed(scope_hash, path.view().substr(from)) ^ parameters))
      t_.report(model_problem::same_parameter, number);
    return path;
  }
  constexpr name of_input(std::string_view n, std::size_t number) {
    return plain(n, inputs, model_problem::same_input, number);
  }
  constexpr name of_output(std::string_view n, std::size_t number) {
    return plain(n, outputs, model_problem::same_output, number);
  }

 private:
  static constexpr std::size_t suffix = 8;  // room for an index or a suffix behind a name
  static constexpr u64 no_name = 14695981039346656037ull, parameters = 1, inputs = no_name ^ 2, outputs = no_name ^ 4;

  static constexpr u64 hashed(u64 h, std::string_view s) {
    for (char c : s) h = (h ^ u8(c)) * 1099511628211ull;
    return h;
  }
  // "path.own"
  constexpr bool append(name& path, std::string_view own) {
    if (path.length + own.size() + 1 + suffix > name::capacity) {
      t_.report(model_problem::long_name, 0);
      return false;
    }
    if (path.length) path.put('.');
    path.put(own);
    return true;
  }
  constexpr name plain(std::string_view n, u64 kind, model_problem twice, std::size_t number) {
    name r;
    if (append(r, n) && !take(hashed(kind, n))) t_.report(twice, number);
    return r;
  }
  static constexpr std::size_t slots_for(const trace& t) {
    const std::size_t names = t.scopes.size() + t.params.size() + t.inputs.size() + t.outputs.size();
    std::size_t slots = 16;
    while (slots < 2 * names) slots *= 2;
    return slots;
  }
  // False if it is there already.
  constexpr bool take(u64 h) {
    std::size_t at = h & (slots_ - 1);
    while (taken_[at] != 0) {
      if (taken_[at] == h) return false;
      at = (at + 1) & (slots_ - 1);
    }
    taken_[at] = h;
    return true;
  }

  trace& t_;
  name root_;
  buffer<name> path_;
  buffer<u64> hash_;  ///< of each path; 0: not named yet
  std::size_t slots_;
  buffer<u64> taken_;  ///< hashes of all full names, in a table of a power of two slots
};

}  // namespace fusionllm::inline v0::detail
