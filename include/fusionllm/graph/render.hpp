// SPDX-License-Identifier: Apache-2.0
// A graph as text: a table for people, and Graphviz dot. Bytes are for 4-byte `real` and the given run-time extents.
#pragma once

#include <string>

#include "cost.hpp"
#include "slice.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// "batch,time,384"
inline std::string text_of(const extents& e) {
  std::string s;
  for (int i = 0; i < e.rank; ++i) {
    const i64 d = e.d[std::size_t(i)];
    if (i) s += ',';
    s += d == batch ? "batch" : d == time ? "time" : std::to_string(d);
  }
  return s;
}

/// Three digits and a prefix: 1.23 G.
inline std::string with_prefix(u64 n) {
  constexpr const char* prefix[] = {"", " k", " M", " G", " T", " P", " E"};
  if (n < 1000) return std::to_string(n);
  int p = 0;
  u64 unit = 1;
  while (n / unit >= 1000) {
    unit *= 1000;
    ++p;
  }
  const u64 whole = n / unit, thousandths = n % unit / (unit / 1000);
  std::string digits = std::to_string(thousandths + 1000).substr(1);
  digits.resize(whole >= 100 ? 0 : whole >= 10 ? 1 : 2);
  return std::to_string(whole) + (digits.empty() ? "" : "." + digits) + prefix[p];
}

/// "gelu + dropout" for a chain.
inline std::string operator_text(const node& n) {
  if (n.links == 0) return std::string(n.op->name);
  std::string s;
  for (int k = 0; k < n.links; ++k) {
    if (k) s += " + ";
    s += n.chain[std::size_t(k)].op->name;
  }
  return s;
}

inline std::string quoted(std::string_view s) {
  std::string q = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') q += '\\';
    q += c;
  }
  return q + "\"";
}

inline std::string padded(std::string s, std::size_t width, bool right = false) {
  if (s.size() < width) s.insert(right ? 0 : s.size(), width - s.size(), ' ');
  return s;
}

inline std::string output_names(const graph_view& g, int i) {
  std::string s;
  for (const auto& o : g.outputs)
    if (o.node == i) s += (s.empty() ? "" : " ") + std::string(o.path.view());
  if (g.loss == i) s += s.empty() ? "(result)" : " (result)";
  return s;
}

}  // namespace detail

/// One line a node: number, operator, scope, inputs, shape, parameters, flops of a forward, bytes of the output; then
/// totals. The run-time extents `s` are for flops and bytes alone.
inline std::string table_of(const graph_view& g, const sizes& s) {
  const std::vector<std::string> head = {"node",       "operator", "scope", "inputs", "shape",
                                         "parameters", "flops",    "bytes", "output"};
  std::vector<std::vector<std::string>> rows{head};
  u64 parameters = 0;
  for (const auto& p : g.params) parameters += p.trained() ? p.count() : 0;
  for (int i = 0; i < g.size(); ++i) {
    const node& n = g.nodes[std::size_t(i)];
    const node_cost c = cost_of(g, i, s);
    std::string inputs, own;
    for (int in : n.in)
      if (in >= 0) inputs += (inputs.empty() ? "" : " ") + std::to_string(in);
    u64 count = 0;
    for (int p : n.params)
      if (p >= 0 && g.params[std::size_t(p)].trained()) count += g.params[std::size_t(p)].count();
    rows.push_back({std::to_string(i), detail::operator_text(n), std::string(n.scope.view()), inputs,
                    detail::text_of(n.out), count ? detail::with_prefix(count) : "",
                    detail::with_prefix(c.flops_forward), detail::with_prefix(c.output_bytes),
                    detail::output_names(g, i)});
  }
  std::vector<std::size_t> width(head.size(), 0);
  for (const auto& r : rows)
    for (std::size_t k = 0; k < r.size(); ++k) width[k] = r[k].size() > width[k] ? r[k].size() : width[k];
  std::string text;
  for (const auto& r : rows) {
    std::string line;
    for (std::size_t k = 0; k < r.size(); ++k) {
      const bool number = k == 0 || (k >= 5 && k <= 7);
      line += detail::padded(r[k], width[k], number) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const u64 flops = training_flops(g, s);
  return text + std::to_string(g.size()) + " nodes, " + std::to_string(g.params.size()) + " parameter tensors, "
         + std::to_string(parameters) + " parameters, " + detail::with_prefix(flops)
         + (flops < 1000 ? " " : "") + "flop a training micro-batch of " + std::to_string(s.batch) + " x "
         + std::to_string(s.time) + "\n";
}

/// The graph for Graphviz: operators as boxes, inputs as ellipses, parameters that several nodes use as diamonds.
inline std::string dot_of(const graph_view& g) {
  std::string text = "digraph model {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (int i = 0; i < g.size(); ++i) {
    const node& n = g.nodes[std::size_t(i)];
    std::string label = detail::operator_text(n);
    if (n.scope.length) label += "\n" + std::string(n.scope.view());
    label += "\n(" + detail::text_of(n.out) + ")";
    if (const std::string names = detail::output_names(g, i); !names.empty()) label += "\n-> " + names;
    std::string escaped;
    for (char c : detail::quoted(label)) escaped += c == '\n' ? "\\n" : std::string(1, c);
    text += "  n" + std::to_string(i) + " [label=" + escaped + (n.op->placeholder ? ", shape=ellipse" : "") + "];\n";
    for (int in : n.in)
      if (in >= 0) text += "  n" + std::to_string(in) + " -> n" + std::to_string(i) + ";\n";
  }
  std::vector<int> uses(g.params.size(), 0);
  for (const auto& n : g.nodes)
    for (int p : n.params)
      if (p >= 0) ++uses[std::size_t(p)];
  for (std::size_t p = 0; p < uses.size(); ++p) {
    if (uses[p] < 2) continue;
    text += "  p" + std::to_string(p) + " [label=" + detail::quoted(g.params[p].path.view()) + ", shape=diamond];\n";
    for (int i = 0; i < g.size(); ++i)
      for (int q : g.nodes[std::size_t(i)].params)
        if (q == int(p)) text += "  p" + std::to_string(p) + " -> n" + std::to_string(i) + " [style=dashed];\n";
  }
  return text + "}\n";
}

}  // namespace fusionllm::inline v0
