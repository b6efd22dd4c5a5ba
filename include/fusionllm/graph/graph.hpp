// SPDX-License-Identifier: Apache-2.0
// `graph_of<Model>`: the model's OP-DAG in static storage, traced, fused and checked at compile time. The graph is
// reached through the model's type and is never a template argument itself (symbols would hold all of it).
#pragma once

#include "fuse.hpp"
#include "sequence.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class Tracer>
struct traced {
  Tracer t;
  int loss = -1;
};

template <class Model, class Device>
constexpr traced<tracer<Device>> run_define(std::size_t nodes_expected = 0, std::size_t params_expected = 0) {
  traced<tracer<Device>> r;
  r.t.nodes.reserve(nodes_expected);
  r.t.params.reserve(params_expected);
  auto result = Model::define(r.t);
  static_assert(tensor_handle<decltype(result)>, "define(g) returns the loss, or the tensor that the model computes");
  r.loss = result.id;
  return r;
}

struct graph_sizes {
  std::size_t traced, nodes, params, outputs, kinds;
};

template <class Model>
constexpr graph_sizes measure() {
  const auto r = run_define<Model, no_device>();
  const auto f = fuse(r.t, r.loss);
  return {r.t.nodes.size(), f.nodes.size(), r.t.params.size(), f.outputs.size(), f.kinds.size()};
}

template <std::size_t N, std::size_t P, std::size_t O, std::size_t K>
struct static_graph {
  std::array<node, N> nodes{};
  std::array<int, N> kind_of{};
  std::array<parameter_info, P> params{};
  std::array<named_output, O> outputs{};
  std::array<chain_kind, K> kinds{};
  int loss = -1;
};

constexpr bool unique_parameter_names(std::span<const parameter_info> params) {
  for (std::size_t i = 0; i < params.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (params[i].path.length == params[j].path.length && params[i].path == params[j].path) return false;
  return true;
}

template <class Model, class Device>
constexpr auto make_graph() {
  constexpr graph_sizes s = measure<Model>();
  static_graph<s.nodes, s.params, s.outputs, s.kinds> g{};
  const auto r = run_define<Model, Device>(s.traced, s.params);
  const auto f = fuse(r.t, r.loss);
  for (std::size_t i = 0; i < s.nodes; ++i) {
    g.nodes[i] = f.nodes[i];
    g.kind_of[i] = f.kind_of[i];
  }
  for (std::size_t i = 0; i < s.params; ++i) g.params[i] = r.t.params[i];
  for (std::size_t i = 0; i < s.outputs; ++i) g.outputs[i] = f.outputs[i];
  for (std::size_t i = 0; i < s.kinds; ++i) g.kinds[i] = f.kinds[i];
  g.loss = f.loss;
  if (s.params <= 128 && !unique_parameter_names(g.params)) throw "two parameters have the same name: name their scopes";
  return g;
}

template <class Model, class Device = no_device>
inline constexpr auto static_graph_of = make_graph<Model, Device>();

}  // namespace detail

/// The model's graph. Usable in constant expressions: `static_assert(graph_of<M>().nodes.size() == 12)`.
template <class Model>
constexpr graph_view graph_of() {
  constexpr auto& g = detail::static_graph_of<Model>;
  return {g.nodes, g.params, g.outputs, g.loss};
}

/// Number of scalars in all parameters; one that is used twice counts once.
constexpr u64 parameter_count(const graph_view& g) {
  u64 n = 0;
  for (const auto& p : g.params) n += p.count();
  return n;
}

/// Index of a parameter, output or input by its name; -1 if there is none.
constexpr int find_parameter(const graph_view& g, std::string_view n) {
  for (std::size_t i = 0; i < g.params.size(); ++i)
    if (g.params[i].path.view() == n) return int(i);
  return -1;
}
constexpr int find_output(const graph_view& g, std::string_view n) {
  for (const auto& o : g.outputs)
    if (o.path.view() == n) return o.node;
  return -1;
}
constexpr int find_input(const graph_view& g, std::string_view n) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes[i].op->placeholder && g.nodes[i].scope.view() == n) return int(i);
  return -1;
}

}  // namespace fusionllm::inline v0
