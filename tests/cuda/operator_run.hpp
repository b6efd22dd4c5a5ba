// SPDX-License-Identifier: Apache-2.0
// Runs one operator of a graph, forward and backward, on data drawn from a seed: tokens and labels in range, what is saved
// carried over, workspaces full of NaNs, and every tensor between guards that nobody may touch.
#pragma once

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include <fusionllm/device/kernel.hpp>

#include "catch.hpp"

namespace seam {

namespace fl = fusionllm;

struct operator_case {
  fl::graph_view graph;
  int node;
  fl::sizes sizes;
  fl::pass mode = fl::pass::training;
  bool over_input = false;  ///< forward writes over in[0] if the operator may; a loss's cotangent over the logits
};

/// Everything that the operator's functions write.
struct operator_results {
  std::vector<double> out;
  std::vector<std::vector<double>> d_in, d_param;
};

/// Host memory in which numbers of type T lie between guards.
template <class T>
class guarded_memory {
 public:
  static constexpr std::size_t guard = 16;

  void* put(const std::vector<double>& x) {
    std::vector<T>& room = kept_.emplace_back(x.size() + 2 * guard, T(-77));
    for (std::size_t i = 0; i < x.size(); ++i) room[guard + i] = T(x[i]);
    return room.data() + guard;
  }
  void* put_integers(const std::vector<std::int32_t>& x) { return integers_.emplace_back(x).data(); }
  void* room(fl::u64 bytes) {
    return put(std::vector<double>((bytes + sizeof(T) - 1) / sizeof(T), std::numeric_limits<double>::quiet_NaN()));
  }
  std::vector<double> get(const void* p, std::size_t n) const {
    return {static_cast<const T*>(p), static_cast<const T*>(p) + n};
  }
  bool intact() const {
    for (const auto& room : kept_)
      for (std::size_t i = 0; i < guard; ++i)
        if (room[i] != T(-77) || room[room.size() - 1 - i] != T(-77)) return false;
    return true;
  }

 private:
  std::deque<std::vector<T>> kept_;
  std::deque<std::vector<std::int32_t>> integers_;
};

/// Uniform in [-2, 2), exact in float.
inline std::vector<double> drawn_numbers(std::size_t n, fl::u32 stream) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 4 * double(fl::uniform(fl::random_word({17, 0, 0, stream}, i))) - 2;
  return x;
}

template <class Memory>
class operator_run {
 public:
  operator_run(const operator_case& c, Memory& memory)
      : c_(c), n_(c.graph.nodes[std::size_t(c.node)]), view_(c.graph.view(c.node, c.sizes)), memory_(memory) {}

  operator_results operator()(const fl::kernel_table& table, fl::device_context& context) {
    operator_results r;
    fl::kernel_args a;
    a.op = &n_;
    a.mode = c_.mode;
    a.key = {99, 5, 3, fl::u32(n_.traced_id)};
    a.loss_scale = 0.125;
    a.statistic_share = 0.3;
    for (std::size_t i = 0; i < inputs(); ++i) a.in[i] = i == integers() ? places() : tensor(view_.in[i], fl::u32(i));
    for (std::size_t i = 0; i < params(); ++i) a.param[i] = parameter(i);
    const bool over = c_.over_input && n_.op->in_place;
    a.out = over ? fl::tensor_ref{a.in[0].data, view_.out} : tensor(view_.out, 20);
    if (c_.mode == fl::pass::training) a.saved = memory_.room(n_.op->saved(view_) * sizeof(double));
    workspace_ = table.workspace_bytes(view_);
    a.workspace = memory_.room(workspace_);
    const std::vector<double> first = read(a.in[0]);
    table.forward(context, a);
    r.out = read(a.out);
    if (c_.mode == fl::pass::inference) return r;
    if (over) a.in[0] = {memory_.put(first), view_.in[0]};
    if (table.backward_input) cotangents(table, context, a, r);
    if (table.backward_weight) gradients(table, context, a, r);
    return r;
  }

 private:
  std::size_t inputs() const { return std::size_t(n_.input_count()); }
  std::size_t params() const { return std::size_t(n_.param_count()); }
  std::size_t integers() const { return std::size_t(n_.op->places); }  // ~0: none
  fl::tensor_ref tensor(const fl::extents& dims, fl::u32 stream) {
    return {memory_.put(drawn_numbers(std::size_t(dims.count()), stream)), dims};
  }
  fl::tensor_ref parameter(std::size_t i) {
    std::vector<double> x = drawn_numbers(std::size_t(view_.params[i].count()), fl::u32(10 + i));
    if (i == 3)
      for (double& v : x) v = 0.5 + std::abs(v);  // a running variance
    return {memory_.put(x), view_.params[i]};
  }
  // Few distinct tokens, so that several meet at one place; some labels do not count.
  fl::tensor_ref places() {
    const fl::extents& dims = view_.in[integers()];
    std::vector<std::int32_t> x(std::size_t(dims.count()));
    const fl::u32 bound = fl::u32(n_.op->place_count(view_));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const fl::u32 word = fl::random_word({18, 0, 0, 0}, i);
      x[i] = std::int32_t(word % bound % (word % 3 ? bound : 4));
      if (n_.op->is_no_place(n_.attr, n_.attr.n[0]) && n_.op->loss && word % 5 == 0) x[i] = std::int32_t(n_.attr.n[0]);
    }
    return {memory_.put_integers(x), dims, fl::dtype::int32};
  }
  std::vector<double> read(const fl::tensor_ref& t) const {
    return t.type == fl::dtype::int32 ? std::vector<double>{} : memory_.get(t.data, std::size_t(t.count()));
  }

  void cotangents(const fl::kernel_table& table, fl::device_context& context, fl::kernel_args& a, operator_results& r) {
    fl::kernel_args b = a;
    if (!n_.op->saves_output) b.out = {};
    if (!n_.op->loss) b.d_out = tensor(view_.out, 30);
    for (std::size_t i = 0; i < inputs(); ++i) {
      if (!(n_.op->saves_inputs >> i & 1)) b.in[i] = {};
      if (!(n_.op->differentiable >> i & 1) || i == integers()) continue;
      const bool over = c_.over_input && n_.op->reuses_input && i == 0;
      b.d_in[i] = over ? b.in[0] : tensor(view_.in[i], fl::u32(40 + i));
    }
    b.workspace = memory_.room(workspace_);
    table.backward_input(context, b);
    for (std::size_t i = 0; i < inputs(); ++i)
      if (b.d_in[i]) r.d_in.push_back(read(b.d_in[i]));
  }
  void gradients(const fl::kernel_table& table, fl::device_context& context, fl::kernel_args& a, operator_results& r) {
    fl::kernel_args b = a;
    b.out = {};
    b.d_out = tensor(view_.out, 30);
    for (std::size_t i = 0; i < params(); ++i) b.d_param[i] = tensor(view_.params[i], fl::u32(60 + i));
    b.workspace = memory_.room(workspace_);
    table.backward_weight(context, b);
    for (std::size_t i = 0; i < params(); ++i) r.d_param.push_back(read(b.d_param[i]));
  }

  const operator_case& c_;
  const fl::node& n_;
  fl::op_view view_;
  Memory& memory_;
  fl::u64 workspace_ = 0;
};

/// The norm of the difference as a share of the norm.
inline double distance_of(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return difference == 0 ? 0 : norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

inline void check_results(const operator_results& found, const operator_results& expected, double bound) {
  CHECK(distance_of(found.out, expected.out) <= bound);
  REQUIRE(found.d_in.size() == expected.d_in.size());
  for (std::size_t i = 0; i < found.d_in.size(); ++i) {
    INFO("cotangent of input " << i);
    CHECK(distance_of(found.d_in[i], expected.d_in[i]) <= 4 * bound);
  }
  REQUIRE(found.d_param.size() == expected.d_param.size());
  for (std::size_t i = 0; i < found.d_param.size(); ++i) {
    INFO("gradient of parameter " << i);
    CHECK(distance_of(found.d_param[i], expected.d_param[i]) <= 4 * bound);
  }
}

}  // namespace seam
