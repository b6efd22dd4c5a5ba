// SPDX-License-Identifier: Apache-2.0
// `graph_of<Model>`: the model's OP-DAG in static storage, traced, fused and checked at compile time. The graph is
// reached through the model's type and is never a template argument itself (symbols would hold all of it).
#pragma once

#include "sequence.hpp"
#include "write_graph.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Runs `define`; returns the number of the node that it returned.
template <class Model, class Tracer>
constexpr int run_define(Tracer& t) {
  auto result = Model::define(t);
  static_assert(tensor_handle<decltype(result)>, "define(g) returns the loss, or the tensor that the model computes");
  return result.id;
}

template <class Model>
constexpr trace::counts count_nodes() {
  tracer<no_device> t;
  run_define<Model>(t);
  return t.counted();
}

template <class Model>
inline constexpr trace::counts counts_of = count_nodes<Model>();

template <class Model>
constexpr auto make_graph() {
  constexpr trace::counts n = counts_of<Model>;
  static_graph<n.nodes, n.params, n.outputs> g{};
  tracer<no_device> t(n);
  const int result = run_define<Model>(t);
  const arrangement a = arrange(t, result);
  write_nodes(g, t, a, result);
  write_names(g, t, a);
  g.problem = t.problem;
  g.culprit = t.culprit;
  return g;
}

template <class Model>
inline constexpr auto static_graph_of = make_graph<Model>();

/// The problem and the number of the node or parameter are in the instantiation.
template <class Model, model_problem P, int Number>
struct check_model {
  using enum model_problem;
  static_assert(P != long_name, "a full name in the model is longer than 55 characters: shorten the scopes");
  static_assert(P != same_parameter, "two parameters of the model have the same name: name them or their scopes");
  static_assert(P != same_input, "two inputs of the model have the same name");
  static_assert(P != same_output, "two outputs of the model have the same name");
  static_assert(P != unused, "a value or parameter of the model is neither used by its result nor named as an output");
  static_assert(P != bad_probability, "dropout(p) needs 0 <= p < 1, label smoothing 0 <= s < 1");
  static constexpr bool ok = true;
};

}  // namespace detail

/// The model's graph. Usable in constant expressions: `static_assert(graph_of<M>().nodes.size() == 12)`.
template <class Model>
constexpr graph_view graph_of() {
  constexpr auto& g = detail::static_graph_of<Model>;
  static_assert(detail::check_model<Model, g.problem, g.culprit>::ok);
  return {g.used_nodes(), g.params, g.outputs, g.loss};
}

/// Number of scalars in all trained parameters; one that is used twice counts once, running statistics do not.
constexpr u64 parameter_count(const graph_view& g) {
  u64 n = 0;
  for (const auto& p : g.params) n += p.trained() ? p.count() : 0;
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
