// SPDX-License-Identifier: Apache-2.0
// Where a step met an infinity or a NaN. Of several faults the first counts, in an order that does not depend on the plan:
// micro-batch by micro-batch, forward before backward, operators in the order in which they run, gradients at the end.
#pragma once

#include <string>
#include <tuple>

#include "../core/bytes.hpp"
#include "../schedule/owners.hpp"

namespace fusionllm::inline v0 {

enum class fault_kind : u32 { none, activation, cotangent, gradient, loss };

constexpr const char* name_of(fault_kind k) {
  constexpr const char* names[] = {"value", "activation", "cotangent", "gradient", "loss"};
  return u32(k) < 5 ? names[u32(k)] : "?";
}

struct fault {
  static constexpr u32 no = ~u32(0);
  fault_kind kind = fault_kind::none;
  u32 micro_batch = no;  ///< of a gradient: none, it is that of the whole step
  u32 node = no;         ///< whose output, or whose output's cotangent; of a gradient: the parameter's first use
  u32 parameter = no;    ///< of a gradient
  u32 peer = no;         ///< who computed it

  explicit operator bool() const { return kind != fault_kind::none; }
  bool operator==(const fault&) const = default;

  static constexpr std::size_t bytes = 20;
  void encode(std::byte* p) const {
    for (u32 x : {u32(kind), micro_batch, node, parameter, peer}) store_little(std::exchange(p, p + 4), x);
  }
  static fault decode(const std::byte* p) {
    const auto next = [&] { return load_little<u32>(std::exchange(p, p + 4)); };
    fault f;
    const u32 kind = next();
    f.kind = kind <= u32(fault_kind::loss) ? fault_kind(kind) : fault_kind::activation;
    f.micro_batch = next();
    f.node = next();
    f.parameter = next();
    f.peer = next();
    return f;
  }
};

/// Whether `a` comes before `b`.
inline bool earlier(const fault& a, const fault& b) {
  const auto key = [](const fault& f) {
    const bool back = f.kind == fault_kind::cotangent;
    return std::tuple(!f, f.micro_batch, back, back ? -i64(f.node) : i64(f.node), f.parameter, f.peer);
  };
  return key(a) < key(b);
}

/// "the activation of h.1.mlp.c_fc (linear, node 10) in micro-batch 2, stage 1, peer-1". `names`: of peers; empty: numbers.
inline std::string describe(const fault& f, const graph_view& g, const plan& p, const std::vector<std::string>& names = {}) {
  std::ostringstream s;
  s << "the " << name_of(f.kind) << " of ";
  if (f.parameter < g.params.size()) s << g.params[f.parameter].path.view() << " in ";
  if (f.node < g.nodes.size()) {
    const node& o = g.nodes[f.node];
    s << (o.scope.view().empty() ? o.op->name : o.scope.view()) << " (" << o.op->name << ", node " << f.node << ')';
  } else s << "an unknown operator";
  if (f.micro_batch != fault::no) s << ", micro-batch " << f.micro_batch;
  if (f.peer != fault::no) {
    if (const int stage = p.stage_of_peer(int(f.peer)); stage >= 0) s << ", stage " << stage;
    s << " on " << (f.peer < names.size() ? names[f.peer] : "peer " + std::to_string(f.peer));
  }
  return std::move(s).str();
}

}  // namespace fusionllm::inline v0
