// SPDX-License-Identifier: Apache-2.0
// What a model says of batches, whoever computes it: batches are bound, checked and cut into parts here, and parts are
// asked of a forward pass (runtime/forward_pass.hpp) a window at a time.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "../compress/element.hpp"
#include "../graph/graph.hpp"
#include "../runtime/forward_pass.hpp"
#include "../runtime/index_check.hpp"
#include "batch.hpp"

namespace fusionllm::inline v0 {

/// The node of a named output, or of the loss ("loss"). Errors: model, naming those there are.
inline int output_node(const graph_view& g, std::string_view name) {
  const int node = name == "loss" ? g.loss : find_output(g, name);
  if (node >= 0) return node;
  std::string names = "loss";
  for (const auto& o : g.outputs) names += ", " + std::string(o.path.view());
  fail(errc::model, "the model has no output '", name, "', it has ", names);
}

/// Errors: model, when a sample of so many times is more than an operator takes.
inline void check_time(const graph_view& g, i64 times) {
  for (const node& n : g.nodes)
    if (const i64 limit = n.op->time_limit(n.attr); limit && times > limit)
      fail(errc::model, "time is ", times, ", the operator ", n.op->name, " (", n.scope.view(), ") takes at most ", limit);
}

class model_outputs {
 public:
  /// For batches of at most `bound`; `real` is what computes.
  model_outputs(const graph_view& g, dtype real, const sizes& bound) : graph_(g), real_(real), bound_(bound) {}
  virtual ~model_outputs() = default;
  model_outputs(const model_outputs&) = delete;
  model_outputs& operator=(const model_outputs&) = delete;

  const graph_view& graph() const { return graph_; }
  dtype real_type() const { return real_; }
  /// Who computes the output at `node`. Errors: model, resource.
  virtual forward_pass& pass_of(int node) = 0;

  /// Computes a named output (or the loss, "loss") of a batch, which may lack inputs that it does not need. `out` has
  /// the output's shape. Errors: model; whatever ends those who compute.
  void predict(const batch_view& in, const output_span& out) {
    const int target = output_node(graph_, out.name);
    forward_pass& pass = pass_of(target);
    const bound_batch bound = fusionllm::bind(in, graph_, real_, bound_, pass.needed());
    const extents expected = graph_.nodes[std::size_t(target)].out.resolve(bound.run);
    if (out.type != real_ || out.dims != expected)
      fail(errc::model, "output '", out.name, "' is ", name_of(real_), ' ', detail::shape_text{expected}, ", the span for it is ",
           name_of(out.type), ' ', detail::shape_text{out.dims});
    each_answer(bound, pass, 1, [&](const tensor_ref& r, i64 row, i64 rows) {
      const u64 bytes = u64(r.count()) * size_of(r.type);
      std::memcpy(static_cast<std::byte*>(out.data) + u64(row) * (bytes / u64(rows)), r.data, bytes);
    });
  }
  /// Mean loss of a batch, in inference mode. Errors: as predict's.
  double evaluate(const batch_view& in) { return evaluate_terms(in).mean; }
  struct mean_loss {
    double mean = 0;
    u64 terms = 0;  ///< that it is the mean of: targets that the loss ignores do not count
  };
  /// The same, for means over several batches.
  mean_loss evaluate_terms(const batch_view& in) {
    const bound_batch bound = fusionllm::bind(in, graph_, real_, bound_);
    const node& loss = graph_.nodes[std::size_t(graph_.loss)];
    const input_span* targets = bound.find(loss.in[1]);
    mean_loss r{0, loss.op->counted(graph_.view(graph_.loss, bound.run), targets ? targets->data : nullptr)};
    each_answer(bound, pass_of(graph_.loss), r.terms ? 1 / double(r.terms) : 0, [&](const tensor_ref& x, i64, i64) {
      r.mean += detail::real_element(x.data, x.type, 0);
    });
    return r;
  }

 private:
  // Calls f(answer, first row, rows) for parts of the batch that fit the pass, in order.
  template <class F>
  void each_answer(const bound_batch& b, forward_pass& pass, double loss_scale, F&& f) {
    std::vector<const void*> whole(graph_.nodes.size());
    for (const auto& e : b.inputs()) whole[std::size_t(e.node)] = e.input.data;
    check_indices(graph_, whole, b.run);
    const auto part = [&](i64 row) { return sizes{(std::min)(pass.bounds().batch, b.run.batch - row), b.run.time}; };
    const auto ask = [&](i64 row) {
      std::vector<const void*> inputs(graph_.nodes.size());
      for (const auto& e : b.inputs()) {
        const u64 stride = u64(graph_.nodes[std::size_t(e.node)].out.resolve({1, b.run.time}).count()) * size_of(e.input.type);
        inputs[std::size_t(e.node)] = static_cast<const std::byte*>(e.input.data) + u64(row) * stride;
      }
      pass.ask(part(row), inputs, loss_scale, 0, false);
      return part(row).batch;
    };
    i64 asked = 0;
    int under_way = 0;
    for (i64 taken = 0; taken < b.run.batch;) {
      for (; asked < b.run.batch && under_way < pass.window(); ++under_way) asked += ask(asked);
      const i64 rows = part(taken).batch;
      f(pass.answer(), taken, rows);
      taken += rows;
      --under_way;
    }
  }

  graph_view graph_;
  dtype real_;
  sizes bound_;
};

}  // namespace fusionllm::inline v0
