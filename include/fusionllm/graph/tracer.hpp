// SPDX-License-Identifier: Apache-2.0
// The trace: `define` runs at compile time with a tracer. It runs first to count, then to record, and once a device to
// list that device's kernels. Compilers evaluate the arguments of a call in orders of their own, so that two of them
// may record one model in two orders: what is numbered and named here is only a start, `arrange` settles both.
#pragma once

#include <type_traits>

#include "buffer.hpp"
#include "node.hpp"

namespace fusionllm::inline v0 {

/// What a planning graph is traced with: no kernels.
struct no_device {};

/// What can be wrong with a model as a whole; `graph_of` reports it.
enum class model_problem { none, long_name, same_parameter, same_input, same_output, unused, bad_probability };

class trace {
 public:
  struct counts {
    std::size_t nodes = 0, params = 0, inputs = 0, outputs = 0, scopes = 0, characters = 0;
  };
  /// A piece of `texts`.
  struct text {
    std::size_t at = 0, length = 0;
  };
  struct scope_record {
    int parent = -1;
    text name;  ///< empty: `index` is the name
    unsigned index = 0;
  };
  struct parameter_record {
    int scope = -1;
    text leaf;
    extents dims;
    initializer init;
    bool decays = true;
    double momentum = -1;
  };
  /// An input's or an output's name.
  struct label {
    int node = -1;
    text name;
  };
  using mark = int;

  /// One that does not record only counts.
  constexpr trace() = default;
  constexpr explicit trace(const counts& expected)
      : nodes(expected.nodes),
        node_scope(expected.nodes),
        params(expected.params),
        inputs(expected.inputs),
        outputs(expected.outputs),
        scopes(expected.scopes),
        texts(expected.characters),
        records_(true) {}

  detail::buffer<node> nodes;
  detail::buffer<int> node_scope;
  detail::buffer<parameter_record> params;
  detail::buffer<label> inputs, outputs;
  detail::buffer<scope_record> scopes;
  detail::buffer<char> texts;
  model_problem problem = model_problem::none;
  int culprit = -1;  ///< the node or parameter where the problem was met

  constexpr const counts& counted() const { return n_; }
  constexpr std::string_view view(text t) const { return {texts.data() + t.at, t.length}; }
  /// Notes the first problem of a model.
  constexpr void report(model_problem p, std::size_t where) {
    if (problem != model_problem::none) return;
    problem = p;
    culprit = int(where);
  }

  /// Opens a scope. Of siblings with one name the later ones get a suffix: linear, linear_1, ...
  constexpr mark enter(std::string_view n) {
    const mark before = scope_;
    if (n.empty()) return before;
    scope_ = int(n_.scopes++);
    const text t = keep(n);
    if (records_) scopes.push({before, t, 0});
    return before;
  }
  /// Opens a scope that is a number.
  constexpr mark enter_index(unsigned i) {
    const mark before = scope_;
    scope_ = int(n_.scopes++);
    if (records_) scopes.push({before, {}, i});
    return before;
  }
  constexpr void leave(mark before) { scope_ = before; }

  /// With a `momentum`, a running statistic.
  constexpr int add_parameter(std::string_view leaf, const extents& dims, const initializer& init, bool decays,
                              double momentum = -1) {
    const text t = keep(leaf);
    if (records_) params.push({scope_, t, dims, init, decays, momentum});
    return int(n_.params++);
  }
  constexpr void name_input(int i, std::string_view n) {
    ++n_.inputs;
    const text t = keep(n);
    if (records_) inputs.push({i, t});
  }
  constexpr void add_output(int i, std::string_view n) {
    ++n_.outputs;
    const text t = keep(n);
    if (records_) outputs.push({i, t});
  }

 protected:
  constexpr int append(const operator_traits* op, element type, const extents& out,
                       const std::array<int, max_inputs>& in, const parameter_slots& with, const attributes& attr) {
    const int i = int(n_.nodes++);
    if (!records_) return i;
    node& n = nodes.push({});
    n.op = op;
    n.out = out;
    n.type = type;
    n.in = in;
    n.params = with.ids;
    n.attr = attr;
    node_scope.push(scope_);
    return i;
  }

 private:
  constexpr text keep(std::string_view s) {
    const text t{n_.characters, s.size()};
    n_.characters += s.size();
    if (records_)
      for (char c : s) texts.push(c);
    return t;
  }

  bool records_ = false;
  counts n_{};
  int scope_ = -1;
};

template <class Device>
class tracer : public trace {
 public:
  using device = Device;

  constexpr tracer() = default;
  constexpr explicit tracer(const counts& expected) : trace(expected) {}
  /// Only lists the kernels of `Device`, one a node as traced; null for the model's inputs.
  constexpr explicit tracer(const kernel_table** kernels) : kernels_(kernels) {}

  template <class Op>
  constexpr int push(element type, const extents& out, const std::array<int, max_inputs>& in,
                     const parameter_slots& with, const attributes& attr) {
    static_assert(std::derived_from<Op, operator_base>, "an operator derives from fusionllm::operator_base");
    if constexpr (!std::is_same_v<Device, no_device> && !Op::placeholder)
      kernels_[counted().nodes] = Device::template kernels<Op>();
    return append(&traits_of<Op>, type, out, in, with, attr);
  }

 private:
  const kernel_table** kernels_ = nullptr;
};

}  // namespace fusionllm::inline v0
