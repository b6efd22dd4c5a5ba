// SPDX-License-Identifier: Apache-2.0
// The order and the names of a traced model's nodes and parameters, from what reads what alone, not from the order in
// which a compiler happened to evaluate `define`: peers built by different compilers must number and name alike.
// Inputs come first, then operators, each after all that it reads and as late as its first reader allows, first inputs
// before second ones; parameters by first use; outputs by name. Names are given in this order.
#pragma once

#include "tracer.hpp"

namespace fusionllm::inline v0::detail {

struct arrangement {
  buffer<int> order;     ///< position -> number in the trace, of what is used
  buffer<int> position;  ///< number in the trace -> position, -1 if it is not used
  buffer<int> params, param_position;  ///< the same of parameters
  buffer<int> outputs;                 ///< indices into the trace's outputs
};

constexpr bool text_before(std::string_view a, std::string_view b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] != b[i]) return u8(a[i]) < u8(b[i]);
  return a.size() < b.size();
}

// Indices of the trace's outputs, by name.
constexpr void sort_outputs(const trace& t, buffer<int>& sorted) {
  for (std::size_t i = 0; i < t.outputs.size(); ++i) {
    sorted.push(int(i));
    for (std::size_t k = i; k > 0; --k) {
      const int x = sorted[k - 1], y = sorted[k];
      if (!text_before(t.view(t.outputs[y].name), t.view(t.outputs[x].name))) break;
      sorted[k - 1] = y;
      sorted[k] = x;
    }
  }
}

// Walks up from results, depth first; no recursion, since compilers limit its depth.
class walk {
 public:
  constexpr explicit walk(const trace& t)
      : ops(t.nodes.size()), t_(t), seen_(t.nodes.size(), false), stack_(t.nodes.size()) {}

  buffer<int> ops;  ///< all operators that were needed so far, each after what it reads

  constexpr bool seen(std::size_t i) const { return seen_[i]; }
  /// Appends inputs of the model to `inputs`.
  constexpr void from(int result, buffer<int>& inputs) {
    enter(result);
    while (stack_.size() > 0) {
      step& top = stack_.back();
      const node& n = t_.nodes[top.node];
      if (top.next_input < max_inputs && n.in[std::size_t(top.next_input)] >= 0) {
        enter(n.in[std::size_t(top.next_input++)]);
      } else {
        (n.op->placeholder ? inputs : ops).push(top.node);
        stack_.pop();
      }
    }
  }

 private:
  struct step {
    int node = -1, next_input = 0;
  };
  constexpr void enter(int i) {
    if (i < 0 || seen_[i]) return;
    seen_[i] = true;
    stack_.push({i, 0});
  }

  const trace& t_;
  buffer<bool> seen_;
  buffer<step> stack_;
};

constexpr arrangement arrange(trace& t, int result) {
  const std::size_t n = t.nodes.size(), params = t.params.size();
  arrangement a{buffer<int>(n), buffer<int>(n, -1), buffer<int>(params), buffer<int>(params, -1),
                buffer<int>(t.outputs.size())};
  sort_outputs(t, a.outputs);
  walk w(t);
  w.from(result, a.order);
  for (int o : a.outputs) w.from(t.outputs[o].node, a.order);
  for (std::size_t i = 0; i < n; ++i) {
    if (w.seen(i)) continue;
    if (t.nodes[i].op->placeholder) a.order.push(int(i));
    else t.report(model_problem::unused, i);
  }
  for (int i : w.ops) a.order.push(i);
  for (std::size_t i = 0; i < a.order.size(); ++i) {
    a.position[a.order[i]] = int(i);
    for (int p : t.nodes[a.order[i]].params) {
      if (p < 0) break;
      if (a.param_position[p] >= 0) continue;
      a.param_position[p] = int(a.params.size());
      a.params.push(p);
    }
  }
  for (std::size_t p = 0; p < params; ++p)
    if (a.param_position[p] < 0) t.report(model_problem::unused, p);
  return a;
}

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
    if (!append(path, own)) hash_[s] = no_name;
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
  constexpr name of_input(std::string_view n, std::size_t number) { return plain(n, inputs, model_problem::same_input, number); }
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
