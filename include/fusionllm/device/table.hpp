// SPDX-License-Identifier: Apache-2.0
// The table of a model on a device: for every node of `graph_of<Model>()` the kernels that compute it. It is traced
// from the same `define`, so that only what the model uses is instantiated, and it is all that a device's compiler
// (nvcc) has to see of a model.
#pragma once

#include <span>
#include <utility>

#include "../graph/graph.hpp"
#include "chain.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
constexpr scalar_function<T> scalar_in(const operator_traits& o) {
  if constexpr (std::is_same_v<T, double>)
    return o.scalar_f64;
  else
    return o.scalar_f32;
}

template <class Device, class... Links>
inline constexpr kernel_table chain_table_of = make_kernel_table<chain_kernel<Device, Links...>, fused_op, Device>();

template <class Model, class Device, std::size_t K, std::size_t... I>
constexpr const kernel_table* chain_table(std::index_sequence<I...>) {
  using T = scalar_real<typename Device::real>;
  constexpr auto& kinds = static_graph_of<Model>.kinds;
  return &chain_table_of<
      Device, chain_link_of<T, scalar_in<T>(*kinds[K].op[I]), kinds[K].binary[I], kinds[K].op[I]->random>...>;
}

template <class Model, class Device, std::size_t... K>
constexpr auto chain_tables(std::index_sequence<K...>) {
  constexpr auto& kinds = static_graph_of<Model>.kinds;
  return std::array<const kernel_table*, sizeof...(K)>{
      chain_table<Model, Device, K>(std::make_index_sequence<std::size_t(kinds[K].links)>{})...};
}

template <class Model, class Device>
constexpr auto make_device_table() {
  constexpr auto& g = static_graph_of<Model>;
  const auto chains = chain_tables<Model, Device>(std::make_index_sequence<std::size_t(g.kind_count)>{});
  std::array<const kernel_table*, g.nodes.size()> traced{};
  tracer<Device> t(traced.data());
  run_define<Model>(t);
  std::array<const kernel_table*, std::size_t(g.node_count)> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = g.source[i] < 0 ? chains[std::size_t(~g.source[i])] : traced[std::size_t(g.source[i])];
  return table;
}

template <class Model, class Device>
inline constexpr auto device_table_of = make_device_table<Model, Device>();

}  // namespace detail

/// One entry per node of `graph_of<Model>()`; null for the model's inputs.
template <class Model, class Device>
std::span<const kernel_table* const> device_table() {
  return detail::device_table_of<Model, Device>;
}

}  // namespace fusionllm::inline v0
