// SPDX-License-Identifier: Apache-2.0
// The warm-up of a device: every kind of operator that the model uses is timed forward and backward, on the largest and
// the smallest node of that kind, with made-up values. What comes out goes to the estimator's fit.
#pragma once

#include "../core/clock.hpp"
#include "../estimate/fit.hpp"
#include "stage_compute.hpp"

namespace fusionllm::inline v0 {

namespace detail {

class operator_timer {
 public:
  operator_timer(const graph_view& g, const device_binding& device, const sizes& s) : g_(g), device_(device), sizes_(s) {}

  void time(int n, int repetitions, std::vector<operator_sample>& out) {
    const node& o = g_.nodes[std::size_t(n)];
    const kernel_table& k = *device_.kernels[std::size_t(n)];
    const node_cost c = cost_of(g_, n, sizes_, size_of(device_.real));
    kernel_args a = arguments(n);
    for (int r = 0; r < repetitions; ++r) {
      settle(*device_.context);
      const nanoseconds begin = machine_clock::read();
      k.forward(*device_.context, a);
      settle(*device_.context);
      const nanoseconds middle = machine_clock::read();
      if (k.backward_input && a.d_in[0]) k.backward_input(*device_.context, a);
      if (k.backward_weight && o.param_count()) k.backward_weight(*device_.context, a);
      settle(*device_.context);
      const nanoseconds end = machine_clock::read();
      if (r == 0) continue;  // first touch of memory, first use of a primitive
      const std::string kind(o.op->name);
      out.push_back({kind, direction::forward, c.flops_forward, c.moved_bytes, middle - begin});
      out.push_back({kind, direction::backward, c.flops_backward, 2 * c.moved_bytes, end - middle});
    }
  }

 private:
  tensor_ref tensor(const extents& dims, dtype type) {
    const u64 bytes = u64(dims.count()) * size_of(type);
    device_memory* of = device_.context->memory();
    memory_.emplace_back(bytes, of);
    tensor_ref t{memory_.back().data(), dims, type};
    memory_block on_host;
    if (of) t.data = (on_host = memory_block(bytes)).data();
    if (detail::is_real(type))
      for (i64 i = 0; i < t.count(); ++i) {
        const double x = 0.01 * double(i % 17) - 0.08;
        if (type == dtype::f64) t.as<double>()[i] = x;
        else detail::put_real(t.data, type, i, float(x));
      }
    if (of) {
      of->upload(memory_.back().data(), t.data, bytes);
      t.data = memory_.back().data();
    }
    return t;
  }
  kernel_args arguments(int n) {
    memory_.clear();
    const node& o = g_.nodes[std::size_t(n)];
    const op_view v = g_.view(n, sizes_);
    kernel_args a;
    a.op = &o;
    for (std::size_t k = 0; k < max_inputs; ++k) {
      if (o.in[k] < 0) continue;
      const bool whole = g_.nodes[std::size_t(o.in[k])].type == element::i32;
      a.in[k] = tensor(v.in[k], whole ? dtype::int32 : device_.real);
      if (!whole && (o.op->differentiable >> k & 1) && !(o.op->passes_cotangent >> k & 1)) a.d_in[k] = tensor(v.in[k], device_.real);
    }
    for (std::size_t k = 0; k < max_params; ++k)
      if (o.params[k] >= 0) {
        a.param[k] = tensor(v.params[k], weights_beside(device_.real));
        a.d_param[k] = tensor(v.params[k], weights_beside(device_.real));
      }
    a.out = tensor(v.out, device_.real);
    if (!o.op->loss) a.d_out = tensor(v.out, device_.real);
    a.saved = tensor({1, {i64(o.op->saved(v)) + 1}}, weights_beside(device_.real)).data;
    memory_.emplace_back(device_.kernels[std::size_t(n)]->workspace_bytes(v), device_.context->memory());
    a.workspace = memory_.back().data();
    return a;
  }

  graph_view g_;
  device_binding device_;
  sizes sizes_;
  std::vector<memory_block> memory_;
};

}  // namespace detail

/// Times the device on a model's operators for micro-batches of `s`.
inline std::vector<operator_sample> warm_up(const graph_view& g, const device_binding& device, const sizes& s, int repetitions = 4) {
  std::vector<operator_sample> out;
  detail::operator_timer timer(g, device, s);
  for (int i = 0; i < g.size(); ++i) {
    if (g.nodes[std::size_t(i)].op->placeholder || !device.kernels[std::size_t(i)]) continue;
    int smallest = i, largest = i;
    bool first = true;
    for (int j = 0; j < g.size(); ++j) {
      if (g.nodes[std::size_t(j)].op != g.nodes[std::size_t(i)].op) continue;
      first = first && j >= i;
      if (cost_of(g, j, s).flops_forward < cost_of(g, smallest, s).flops_forward) smallest = j;
      if (cost_of(g, j, s).flops_forward > cost_of(g, largest, s).flops_forward) largest = j;
    }
    if (!first) continue;
    timer.time(largest, repetitions, out);
    if (smallest != largest) timer.time(smallest, repetitions, out);
  }
  return out;
}

}  // namespace fusionllm::inline v0
