// SPDX-License-Identifier: Apache-2.0
// `graph`: the operators of the model, as a table or for Graphviz.
#pragma once

#include "../graph/render.hpp"
#include "../trainer/json_text.hpp"
#include "program.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline void add_json(json_text& j, const extents& e) {
  j.begin_array();
  for (int i = 0; i < e.rank; ++i) {
    const i64 d = e.d[std::size_t(i)];
    if (d == batch) j.value("batch");
    else if (d == time) j.value("time");
    else j.value(d);
  }
  j.end_array();
}

inline std::string json_of(const graph_view& g, u64 fingerprint, const sizes& s) {
  json_text j(1);
  j.begin_object().field("fingerprint", fingerprint).field("loss", g.loss).key("nodes").begin_array();
  for (int i = 0; i < g.size(); ++i) {
    const node& n = g.nodes[std::size_t(i)];
    const node_cost c = cost_of(g, i, s);
    j.begin_object().field("operator", std::string_view(operator_text(n))).field("scope", n.scope.view()).key("inputs").begin_array();
    for (int in : n.in)
      if (in >= 0) j.value(in);
    j.end_array().key("shape");
    add_json(j, n.out);
    j.key("parameters").begin_array();
    for (int p : n.params)
      if (p >= 0) j.value(g.params[std::size_t(p)].path.view());
    j.end_array().field("flops", c.flops_forward).field("bytes", c.output_bytes).end_object();
  }
  j.end_array().key("parameters").begin_array();
  for (const auto& p : g.params) {
    j.begin_object().field("name", p.path.view()).key("shape");
    add_json(j, p.dims);
    j.end_object();
  }
  return j.end_array().end_object().take() + '\n';
}

}  // namespace detail

inline int graph_command(const command_call& call) {
  const run_config& c = call.config;
  const sizes one{(c.batch + c.micro_batches - 1) / c.micro_batches, c.time};
  const graph_view& g = call.model.graph;
  const std::string text = call.options.json               ? detail::json_of(g, call.model.fingerprint, one)
                           : call.options.format == "dot" ? dot_of(g)
                                                          : table_of(g, one);
  std::fputs(text.c_str(), call.out);
  return 0;
}

}  // namespace fusionllm::inline v0
