// SPDX-License-Identifier: Apache-2.0
// Runs one operator of a graph, forward and backward, on data drawn from a seed: tokens and labels in range, what is saved
// carried over, workspaces full of NaNs, and every tensor between guards that nobody may touch.
#pragma once

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include <fusionllm/core/half.hpp>
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
  bool rounded = false;     ///< activations are numbers that bf16 has
};

/// Everything that the operator's functions write.
struct operator_results {
  std::vector<double> out;
  std::vector<std::vector<double>> d_in, d_param;
};

/// Host memory in which numbers lie between guards: activations of type T, and parameters, which are never narrower than
/// float. Every second tensor is aligned to its elements only.
template <class T>
class guarded_memory {
 public:
  static constexpr std::size_t guard = 16;
  static constexpr bool narrow = sizeof(T) < sizeof(float);
  static constexpr fl::dtype type = narrow ? fl::dtype::bf16 : fl::dtype_of<T>;
  using wide = std::conditional_t<narrow, float, T>;

  void* put(const std::vector<double>& x) { return put_in(kept_, x, kept_.size() % 2); }
  void* put_parameter(const std::vector<double>& x) { return put_in(parameters_, x, parameters_.size() % 2); }
  void* put_integers(const std::vector<std::int32_t>& x) { return integers_.emplace_back(x).data(); }
  void* room(fl::u64 bytes) {
    return put_in(rooms_, std::vector<double>((bytes + sizeof(double) - 1) / sizeof(double),
                                              std::numeric_limits<double>::quiet_NaN()), 0);
  }
  std::vector<double> get(const void* p, std::size_t n) const { return read<T>(p, n); }
  std::vector<double> get_parameter(const void* p, std::size_t n) const { return read<wide>(p, n); }
  bool intact() const { return all_intact(kept_) && all_intact(parameters_) && all_intact(rooms_); }

 private:
  template <class E>
  static E made(double x) {
    if constexpr (sizeof(E) < sizeof(float)) return E(float(x));
    else return E(x);
  }
  template <class E>
  static std::vector<double> read(const void* p, std::size_t n) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (sizeof(E) < sizeof(float)) x[i] = double(float(static_cast<const E*>(p)[i]));
      else x[i] = double(static_cast<const E*>(p)[i]);
    }
    return x;
  }
  template <class E>
  static void* put_in(std::deque<std::vector<E>>& where, const std::vector<double>& x, std::size_t past) {
    std::vector<E>& room = where.emplace_back(x.size() + 2 * guard + 1, made<E>(-77));
    for (std::size_t i = 0; i < x.size(); ++i) room[guard + past + i] = made<E>(x[i]);
    return room.data() + guard + past;
  }
  template <class E>
  static bool all_intact(const std::deque<std::vector<E>>& where) {
    for (const auto& room : where)
      for (std::size_t i = 0; i < guard; ++i)
        for (const E& e : {room[i], room[room.size() - 1 - i]}) {
          const E whole = made<E>(-77);
          if (std::memcmp(&e, &whole, sizeof(E)) != 0) return false;
        }
    return true;
  }

  std::deque<std::vector<T>> kept_;
  std::deque<std::vector<wide>> parameters_;
  std::deque<std::vector<double>> rooms_;
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
    a.out = over ? fl::tensor_ref{a.in[0].data, view_.out, a.in[0].type} : tensor(view_.out, 20);
    if (n_.op->loss) a.out = wide_tensor(view_.out, 20);
    if (c_.mode == fl::pass::training) a.saved = memory_.room(n_.op->saved(view_) * sizeof(double));
    workspace_ = table.workspace_bytes(view_);
    a.workspace = memory_.room(workspace_);
    const std::vector<double> first = read(a.in[0]);
    table.forward(context, a);
    r.out = n_.op->loss ? read_wide(a.out) : read(a.out);
    if (c_.mode == fl::pass::inference) return r;
    if (over) a.in[0] = {memory_.put(first), view_.in[0], a.in[0].type};
    if (table.backward_input) cotangents(table, context, a, r);
    if (table.backward_weight) gradients(table, context, a, r);
    return r;
  }

 private:
  std::size_t inputs() const { return std::size_t(n_.input_count()); }
  std::size_t params() const { return std::size_t(n_.param_count()); }
  std::size_t integers() const { return std::size_t(n_.op->places); }  // ~0: none
  fl::tensor_ref tensor(const fl::extents& dims, fl::u32 stream) {
    std::vector<double> x = drawn_numbers(std::size_t(dims.count()), stream);
    if (c_.rounded)
      for (double& v : x) v = double(float(fl::bfloat16(float(v))));
    fl::tensor_ref t{memory_.put(x), dims};
    if constexpr (requires { Memory::type; }) t.type = Memory::type;
    return t;
  }
  // Losses, parameters and their gradients: never narrower than float.
  fl::tensor_ref wide_tensor(const fl::extents& dims, fl::u32 stream) {
    return {put_wide(drawn_numbers(std::size_t(dims.count()), stream)), dims};
  }
  void* put_wide(const std::vector<double>& x) {
    if constexpr (requires { memory_.put_parameter(x); }) return memory_.put_parameter(x);
    else return memory_.put(x);
  }
  std::vector<double> read_wide(const fl::tensor_ref& t) const {
    if constexpr (requires { memory_.get_parameter(t.data, 0); })
      return memory_.get_parameter(t.data, std::size_t(t.count()));
    else return read(t);
  }
  fl::tensor_ref parameter(std::size_t i) {
    std::vector<double> x = drawn_numbers(std::size_t(view_.params[i].count()), fl::u32(10 + i));
    if (i == 3)
      for (double& v : x) v = 0.5 + std::abs(v);  // a running variance
    return {put_wide(x), view_.params[i]};
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
    for (std::size_t i = 0; i < params(); ++i) b.d_param[i] = wide_tensor(view_.params[i], fl::u32(60 + i));
    b.workspace = memory_.room(workspace_);
    table.backward_weight(context, b);
    for (std::size_t i = 0; i < params(); ++i) r.d_param.push_back(read_wide(b.d_param[i]));
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
