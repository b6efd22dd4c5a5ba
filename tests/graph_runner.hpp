// SPDX-License-Identifier: Apache-2.0
// Runs a whole model forward and backward on a device, without the runtime: one vector per value, nodes in order. It
// holds kernels to their contract: what they must not read is absent or NaN, what they must overwrite is NaN before.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fusionllm/device/kernel.hpp>
#include <fusionllm/graph/autodiff.hpp>

namespace fusionllm_test {

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using fl::u64;

/// |a - b| / |b| in the Euclidean norm; 0 for two vectors of zeros.
template <class A, class B>
double distance(const A& a, const B& b) {
  double difference = 0, norm = 0;
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  if (difference == 0) return 0;  // a NaN anywhere makes neither branch taken
  return std::sqrt(difference) / (norm > 0 ? std::sqrt(norm) : 1.0);
}

template <class Device>
class graph_runner {
 public:
  using T = typename Device::real;
  using context = typename Device::context;

  /// What a test may vary before `forward`.
  fl::pass mode = fl::pass::training;
  fl::random_key key{1, 0, 0, 0};
  double loss_scale = 0;     ///< 0: the reciprocal of this micro-batch's own count of terms
  double statistic_share = 0.1;
  bool reuse_input = false;  ///< backward of `reuses_input` operators writes over in[0]
  bool use_partials = true;  ///< kernels that add to a partial cotangent are given one
  bool in_place = false;     ///< forward of `in_place` operators writes over a copy of in[0]

  graph_runner(fl::graph_view g, std::span<const fl::kernel_table* const> table, fl::sizes s, context& c)
      : g_(g), table_(table), sizes_(s), context_(c) {
    for (int i = 0; i < g.size(); ++i) {
      const std::size_t n = std::size_t(g.view(i, s).out.count());
      const bool real = node(i).type == fl::element::real;
      values_.emplace_back(real ? n : 0, nan());
      integers_.emplace_back(real ? 0 : n, 0);
      cotangents_.emplace_back();
      saved_.emplace_back(node(i).op->placeholder ? 0 : std::size_t(node(i).op->saved(g.view(i, s))), nan());
    }
    for (const auto& p : g.params) {
      parameters_.emplace_back(std::size_t(p.count()), T(0));
      gradients_.emplace_back(std::size_t(p.count()), T(0));
    }
  }

  const fl::graph_view& graph() const { return g_; }
  std::vector<T>& value(int i) { return values_[std::size_t(i)]; }
  std::vector<std::int32_t>& integers(int i) { return integers_[std::size_t(i)]; }
  std::vector<T>& parameter(int p) { return parameters_[std::size_t(p)]; }
  std::vector<T>& gradient(int p) { return gradients_[std::size_t(p)]; }
  /// After backward; empty where the node gets none. The loss node has none.
  const std::vector<T>& cotangent(int i) const { return cotangents_[std::size_t(i)]; }
  int parameter_count() const { return int(parameters_.size()); }

  /// Every parameter and every real input from a normal distribution, every integer input from 0 .. vocabulary - 1.
  /// The same numbers (rounded) for every device.
  void randomize(u64 seed, int vocabulary = 1, double deviation = 0.5) {
    for (int p = 0; p < parameter_count(); ++p) fill(parameter(p), {seed, 1, 0, u32(p)}, deviation);
    for (int i = 0; i < g_.size(); ++i) {
      if (!node(i).op->placeholder) continue;
      fill(value(i), {seed, 2, 0, u32(i)}, 2 * deviation);
      for (std::size_t k = 0; k < integers(i).size(); ++k)
        integers(i)[k] = std::int32_t(fl::random_word({seed, 3, 0, u32(i)}, k) % u32(vocabulary));
    }
  }

  /// All nodes from `first` on; returns the loss (of a model that has one).
  double forward(int first = 0) {
    for (int i = first; i < g_.size(); ++i)
      if (!node(i).op->placeholder) forward_node(i);
    return g_.loss >= 0 ? double(value(g_.loss)[0]) : 0;
  }

  /// Adds to the gradients.
  void backward() {
    wanted_ = fl::nodes_with_cotangent(g_);
    for (auto& c : cotangents_) c.clear();
    for (int i = g_.size() - 1; i >= 0; --i)
      if (wanted_[std::size_t(i)]) backward_node(i);
  }
  void clear_gradients() {
    for (auto& x : gradients_) x.assign(x.size(), T(0));
  }

 private:
  static T nan() { return std::numeric_limits<T>::quiet_NaN(); }
  const fl::node& node(int i) const { return g_.nodes[std::size_t(i)]; }

  // Sums of twelve uniform numbers: normal enough, and without a library's own generator.
  static void fill(std::vector<T>& x, const fl::random_key& k, double deviation) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      double sum = -6;
      for (u64 j = 0; j < 12; ++j) sum += double(fl::uniform(fl::random_word(k, 12 * i + j)));
      x[i] = T(float(deviation * sum));
    }
  }

  fl::tensor_ref ref(std::vector<T>& v, const fl::extents& dims) {
    return {v.empty() ? nullptr : v.data(), dims, fl::dtype_of<T>};
  }
  fl::tensor_ref value_ref(int i) {
    const fl::extents dims = node(i).out.resolve(sizes_);
    if (node(i).type == fl::element::real) return ref(value(i), dims);
    return {integers(i).data(), dims, fl::dtype::int32};
  }

  fl::kernel_args arguments(int i) {
    fl::kernel_args a;
    a.op = &node(i);
    a.mode = mode;
    for (std::size_t k = 0; k < fl::max_params; ++k)
      if (const int p = node(i).params[k]; p >= 0) a.param[k] = ref(parameter(p), g_.params[std::size_t(p)].dims);
    auto& saved = saved_[std::size_t(i)];
    a.saved = saved.empty() || mode == fl::pass::inference ? nullptr : saved.data();
    const u64 bytes = table_[std::size_t(i)]->workspace_bytes(g_.view(i, sizes_));
    workspace_.assign(std::size_t(bytes / sizeof(T) + 1), nan());
    a.workspace = bytes ? workspace_.data() : nullptr;
    a.key = key;
    a.key.node = u32(node(i).traced_id);
    a.statistic_share = statistic_share;
    a.loss_scale = node(i).op->loss ? scale(i) : 1;
    return a;
  }

  double scale(int i) {
    if (loss_scale != 0) return loss_scale;
    const int targets = node(i).in[1];
    const u64 n = node(i).op->counted(g_.view(i, sizes_), targets >= 0 ? value_ref(targets).data : nullptr);
    return n ? 1.0 / double(n) : 0;
  }

  void forward_node(int i) {
    fl::kernel_args a = arguments(i);
    for (std::size_t k = 0; k < fl::max_inputs; ++k)
      if (node(i).in[k] >= 0) a.in[k] = value_ref(node(i).in[k]);
    if (in_place && node(i).op->in_place) {
      value(i) = value(node(i).in[0]);
      a.in[0].data = value(i).data();
      for (std::size_t k = 1; k < fl::max_inputs; ++k)  // x + x
        if (node(i).in[k] == node(i).in[0]) a.in[k].data = value(i).data();
    } else {
      value(i).assign(value(i).size(), nan());
    }
    a.out = value_ref(i);
    table_[std::size_t(i)]->forward(context_, a);
  }

  // The sum of cotangents so far, plus one more: later consumers came first.
  void accumulate(int i, const std::vector<T>& own) {
    auto& sum = cotangents_[std::size_t(i)];
    if (sum.empty())
      sum = own;
    else
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = sum[k] + own[k];
  }

  void backward_node(int i) {
    const fl::node& n = node(i);
    const fl::kernel_table& t = *table_[std::size_t(i)];
    fl::kernel_args a = arguments(i);
    for (std::size_t k = 0; k < fl::max_inputs; ++k)
      if (n.in[k] >= 0 && (n.op->saves_inputs >> k & 1)) a.in[k] = value_ref(n.in[k]);
    if (n.op->saves_output) a.out = value_ref(i);
    if (!n.op->loss) a.d_out = ref(cotangents_[std::size_t(i)], g_.view(i, sizes_).out);
    if (t.backward_weight && n.param_count() > 0) {
      for (std::size_t k = 0; k < fl::max_params; ++k)
        if (const int p = n.params[k]; p >= 0) a.d_param[k] = ref(gradient(p), g_.params[std::size_t(p)].dims);
      t.backward_weight(context_, a);
      a.d_param = {};
    }
    std::vector<std::vector<T>> own(fl::max_inputs);
    fl::flags adds(fl::max_inputs, 0);
    bool any = false;
    for (std::size_t k = 0; k < fl::max_inputs; ++k) {
      const int in = n.in[k];
      if (in < 0 || !wanted_[std::size_t(in)] || !(n.op->differentiable >> k & 1)) continue;
      any = true;
      own[k].assign(value(in).size(), nan());
      const fl::extents dims = g_.view(in, sizes_).out;
      auto& sum = cotangents_[std::size_t(in)];
      if (use_partials && t.adds_partial && !sum.empty() && reads_once(n, in)) {
        a.d_partial[k] = ref(sum, dims);
        adds[k] = 1;
      }
      a.d_in[k] = ref(own[k], dims);
      if (k == 0 && reuse_input && n.op->reuses_input) a.d_in[0].data = value(in).data();
    }
    if (!any) return;
    if (!t.backward_input) throw std::logic_error("an operator whose inputs need cotangents has no backward_input");
    t.backward_input(context_, a);
    for (std::size_t k = fl::max_inputs; k-- > 0;) {
      if (own[k].empty()) continue;
      if (k == 0 && reuse_input && n.op->reuses_input) own[0] = value(n.in[0]);
      if (adds[k])
        cotangents_[std::size_t(n.in[k])] = own[k];
      else
        accumulate(n.in[k], own[k]);
    }
  }
  static bool reads_once(const fl::node& n, int in) {
    int uses = 0;
    for (int x : n.in) uses += x == in;
    return uses == 1;
  }

  fl::graph_view g_;
  std::span<const fl::kernel_table* const> table_;
  fl::sizes sizes_;
  context& context_;
  std::vector<std::vector<T>> values_, cotangents_, saved_, parameters_, gradients_;
  std::vector<std::vector<std::int32_t>> integers_;
  std::vector<T> workspace_;
  fl::flags wanted_;
};

}  // namespace fusionllm_test
