// SPDX-License-Identifier: Apache-2.0
// The trace: `define` runs at compile time with a tracer. It runs first to count nodes, parameters and names, then to
// write them straight into arrays of that size, and once a device to list that device's kernels. The graph is the same
// for every device. What is wrong with a model as a whole is noted here and reported by `graph_of`.
#pragma once

#include <type_traits>
#include <vector>

#include "node.hpp"

namespace fusionllm::inline v0 {

/// What a planning graph is traced with: no kernels.
struct no_device {};

/// What can be wrong with a model as a whole.
enum class model_problem { none, long_name, same_parameter, same_input, same_output, bad_probability };

class trace {
 public:
  struct counts {
    std::size_t nodes = 0, params = 0, outputs = 0, names = 0;
  };
  /// Where a trace is written to: arrays with room for what an earlier trace counted.
  struct storage {
    node* nodes = nullptr;
    parameter_info* params = nullptr;
    named_output* outputs = nullptr;
  };
  /// Where to return to when a scope closes.
  struct mark {
    u64 hash;
    u8 length;
  };

  /// Without storage it only counts.
  constexpr trace() = default;
  constexpr trace(storage to, const counts& expected) : to_(to), records_(true) {
    std::size_t slots = 16;
    while (slots < 2 * expected.names) slots *= 2;
    seen_.assign(slots, 0);
  }

  constexpr const counts& counted() const { return n_; }
  constexpr model_problem problem() const { return problem_; }
  /// The node or parameter, or the number of nodes before it, where the problem was met.
  constexpr int culprit() const { return culprit_; }
  /// Notes the first problem of a model.
  constexpr void report(model_problem p, std::size_t culprit) {
    if (problem_ != model_problem::none) return;
    problem_ = p;
    culprit_ = int(culprit);
  }

  /// Opens a scope. One that would repeat a sibling's name gets a suffix: linear, linear_1, ...
  constexpr mark enter(std::string_view n) {
    const mark before{hash_, scope_.length};
    if (n.empty()) return before;
    ++n_.names;
    if (!records_ || !put(n)) return before;
    const mark plain{hash_, scope_.length};
    for (unsigned k = 1; !insert(hash_); ++k) {
      leave(plain);
      scope_.put('_');
      scope_.put_number(k);
      hash_ = hashed(plain.hash, scope_.view().substr(plain.length));
    }
    return before;
  }
  constexpr mark enter_index(unsigned i) {
    const mark before{hash_, scope_.length};
    if (!records_ || !room(suffix)) return before;
    if (scope_.length) scope_.put('.');
    scope_.put_number(i);
    hash_ = hashed(hash_, scope_.view().substr(before.length));
    return before;
  }
  constexpr void leave(mark before) {
    scope_.shorten(before.length);
    hash_ = before.hash;
  }
  constexpr const name& scope() const { return scope_; }

  constexpr int add_parameter(std::string_view leaf, extents dims, initializer init, bool decays) {
    const int i = int(n_.params++);
    ++n_.names;
    if (!records_) return i;
    const mark before{hash_, scope_.length};
    if (put(leaf) && !insert(hash_ ^ parameter_names)) report(model_problem::same_parameter, std::size_t(i));
    parameter_info& p = to_.params[i];
    p.path = scope_;
    p.dims = dims;
    p.init = init;
    p.decays = decays;
    leave(before);
    return i;
  }

  constexpr void name_input(int i, std::string_view n) {
    ++n_.names;
    if (!records_) return;
    if (n.size() > name::capacity) return report(model_problem::long_name, std::size_t(i));
    if (!insert(hashed(input_names, n))) report(model_problem::same_input, std::size_t(i));
    to_.nodes[i].scope = name(n);
  }

  constexpr void add_output(int i, std::string_view n) {
    ++n_.names;
    const std::size_t k = n_.outputs++;
    if (!records_) return;
    if (n.size() > name::capacity) return report(model_problem::long_name, std::size_t(i));
    if (!insert(hashed(output_names, n))) report(model_problem::same_output, std::size_t(i));
    to_.outputs[k].path = name(n);
    to_.outputs[k].node = i;
  }

 protected:
  constexpr int append(const operator_traits* op, element type, const extents& out,
                       const std::array<int, max_inputs>& in, const std::array<int, max_params>& params,
                       const attributes& attr) {
    const int i = int(n_.nodes++);
    if (!records_) return i;
    node& n = to_.nodes[i];
    n.op = op;
    n.out = out;
    n.type = type;
    n.in = in;
    n.params = params;
    n.attr = attr;
    n.scope = scope_;
    n.traced_id = i;
    return i;
  }

 private:
  static constexpr std::size_t suffix = 8;  // room for an index or a suffix behind a name
  static constexpr u64 no_names = 14695981039346656037ull;
  static constexpr u64 parameter_names = 1, input_names = no_names ^ 2, output_names = no_names ^ 4;

  static constexpr u64 hashed(u64 h, std::string_view s) {
    for (char c : s) h = (h ^ u8(c)) * 1099511628211ull;
    return h;
  }
  constexpr bool room(std::size_t n) {
    if (scope_.length + n + suffix <= name::capacity) return true;
    report(model_problem::long_name, n_.nodes);
    return false;
  }
  // Appends ".n" to the scope.
  constexpr bool put(std::string_view n) {
    if (!room(n.size() + 1)) return false;
    const u8 from = scope_.length;
    if (from) scope_.put('.');
    scope_.put(n);
    hash_ = hashed(hash_, scope_.view().substr(from));
    return true;
  }
  // False if it is there already.
  constexpr bool insert(u64 h) {
    h |= u64(h == 0);
    std::size_t at = h & (seen_.size() - 1);
    while (seen_[at] != 0) {
      if (seen_[at] == h) return false;
      at = (at + 1) & (seen_.size() - 1);
    }
    seen_[at] = h;
    return true;
  }

  storage to_{};
  bool records_ = false;
  counts n_{};
  model_problem problem_ = model_problem::none;
  int culprit_ = -1;
  std::vector<u64> seen_;  ///< hashes of all full names, in a table of a power of two slots
  name scope_;
  u64 hash_ = no_names;
};

template <class Device>
class tracer : public trace {
 public:
  using device = Device;

  constexpr tracer() = default;
  constexpr tracer(storage to, const counts& expected) : trace(to, expected) {}
  /// Only lists the kernels of `Device`, a node each; null for the model's inputs.
  constexpr explicit tracer(const kernel_table** kernels) : kernels_(kernels) {}

  template <class Op>
  constexpr int push(element type, const extents& out, const std::array<int, max_inputs>& in,
                     const std::array<int, max_params>& params, const attributes& attr) {
    if constexpr (!std::is_same_v<Device, no_device> && !Op::placeholder)
      kernels_[counted().nodes] = Device::template kernels<Op>();
    return append(&traits_of<Op>, type, out, in, params, attr);
  }

 private:
  const kernel_table** kernels_ = nullptr;
};

}  // namespace fusionllm::inline v0
