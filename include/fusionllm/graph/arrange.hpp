// SPDX-License-Identifier: Apache-2.0
// The order of a traced model's nodes and parameters, from what reads what alone, not from the order in which a
// compiler happened to evaluate `define`: peers built by different compilers must number and name alike. Inputs come
// first, then operators, each after all that it reads and as late as its first reader allows, what first inputs need
// before what second ones need; parameters by first use; outputs by name. Names are given in this order.
#pragma once

#include "tracer.hpp"

namespace fusionllm::inline v0::detail {

struct arrangement {
  buffer<int> order;                   ///< position -> number in the trace, of what is used
  buffer<int> position;                ///< number in the trace -> position, -1 if it is not used
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
    if (t.nodes[i].op->placeholder)
      a.order.push(int(i));
    else
      t.report(model_problem::unused, i);
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

}  // namespace fusionllm::inline v0::detail
