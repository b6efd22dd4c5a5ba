// SPDX-License-Identifier: Apache-2.0
// The trace: `define` runs at compile time with a tracer, which records nodes, parameters and scopes. A tracer for a
// device also records that device's kernels; the graph is the same for every device.
#pragma once

#include <vector>

#include "../core/fnv.hpp"
#include "node.hpp"

namespace fusionllm::inline v0 {

/// What a planning graph is traced with: no kernels.
struct no_device {
  template <class Op>
  static constexpr const kernel_table* kernels() {
    return nullptr;
  }
};

class trace {
 public:
  std::vector<node> nodes;
  std::vector<parameter_info> params;
  std::vector<named_output> outputs;

  /// Where to return to when a scope closes.
  struct mark {
    u8 length;
    std::size_t siblings;
  };

  /// Opens a scope. One that would repeat a sibling's name gets a suffix: linear, linear_1, ...
  constexpr mark enter(std::string_view n) {
    const mark before{scope_.length, siblings_begin_};
    if (n.empty()) return before;
    if (scope_.length) scope_.put('.');
    const u8 parent = scope_.length;
    scope_.put(n);
    const u8 plain = scope_.length;
    u64 leaf = leaf_hash(parent);
    for (unsigned k = 1; is_sibling(leaf); ++k) {
      scope_.shorten(plain);
      scope_.put('_');
      scope_.put_number(k);
      leaf = leaf_hash(parent);
    }
    siblings_.push_back(leaf);
    siblings_begin_ = siblings_.size();
    return before;
  }
  constexpr mark enter_index(unsigned i) {
    const mark before{scope_.length, siblings_begin_};
    scope_.put('.');
    scope_.put_number(i);
    siblings_begin_ = siblings_.size();
    return before;
  }
  constexpr void leave(mark before) {
    if (before.length == scope_.length) return;  // an empty scope: nothing was opened
    siblings_.resize(siblings_begin_);
    siblings_begin_ = before.siblings;
    scope_.shorten(before.length);
  }
  constexpr const name& scope() const { return scope_; }

  constexpr int add_parameter(std::string_view leaf, extents dims, initializer init, bool decays) {
    parameter_info p;
    p.path = scope_;
    if (scope_.length) p.path.put('.');
    p.path.put(leaf);
    p.dims = dims;
    p.init = init;
    p.decays = decays;
    params.push_back(p);
    return int(params.size()) - 1;
  }

 private:
  constexpr u64 leaf_hash(u8 from) const {
    fnv h;
    for (u8 i = from; i < scope_.length; ++i) h.byte(u8(scope_.text[i]));
    return h.value();
  }
  constexpr bool is_sibling(u64 leaf) const {
    for (std::size_t i = siblings_begin_; i < siblings_.size(); ++i)
      if (siblings_[i] == leaf) return true;
    return false;
  }

  std::vector<u64> siblings_;  ///< hashes of the names opened in the current scope, from siblings_begin_ on
  std::size_t siblings_begin_ = 0;
  name scope_;
};

template <class Device>
class tracer : public trace {
 public:
  using device = Device;

  template <graph_operator Op>
  constexpr int push(element type, extents out, std::array<int, max_inputs> inputs,
                     std::array<int, max_params> parameters, attributes attr) {
    node n;
    n.op = &traits_of<Op>;
    if constexpr (!Op::placeholder) n.kernels = Device::template kernels<Op>();
    n.out = out;
    n.type = type;
    n.in = inputs;
    n.params = parameters;
    n.attr = attr;
    n.scope = scope();
    n.traced_id = int(nodes.size());
    nodes.push_back(n);
    return n.traced_id;
  }
};

}  // namespace fusionllm::inline v0
