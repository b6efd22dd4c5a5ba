// SPDX-License-Identifier: Apache-2.0
// What an operator is to everything but a device: a struct of static members that derives from `operator_base` and
// overrides what it needs. No member depends on a shape's type. How it computes is `kernel<Op, Device>` (device layer).
#pragma once

#include <array>
#include <concepts>
#include <string_view>

#include "../core/config.hpp"
#include "extent.hpp"

namespace fusionllm::inline v0 {

inline constexpr int max_inputs = 5;
inline constexpr int max_params = 4;
inline constexpr int max_links = 4;  ///< element-wise operators in one fused chain

/// An operator's parameters as values: integers (heads, axis, ignore index) and one real (probability, epsilon).
struct attributes {
  std::array<i64, 3> n{};
  double x = 0;
  constexpr bool operator==(const attributes&) const = default;
};

/// One operator on one micro-batch, shapes only. Every extent is concrete.
struct op_view {
  std::array<extents, max_inputs> in{};
  std::array<extents, max_params> params{};
  extents out{};
  attributes attr{};
};

/// The parameters of a recorded operator, by number; -1: absent.
struct parameter_slots {
  std::array<int, max_params> ids;
  constexpr parameter_slots(int a = -1, int b = -1, int c = -1, int d = -1) : ids{a, b, c, d} {}
};

/// What an element-wise operator sees of one element.
struct scalar_args {
  attributes attr;
  u32 random = 0;         ///< the element's random word, if the operator is `random`
  bool training = false;  ///< false in inference: dropout is the identity
};

/// What is asked of an element-wise operator: its value, or the cotangent of its first or its second input.
enum class scalar_part { value, d_first, d_second };

/// One element of an element-wise operator, all three parts behind one pointer, so that a chain of operators is a pack
/// of pointers: x and y are the inputs, d the output's cotangent (unused for `value`).
template <class T>
using scalar_function = T (*)(scalar_part part, T x, T y, T d, const scalar_args&);

/// Defaults; derive an operator from it.
struct operator_base {
  static constexpr bool elementwise = false;       ///< has `apply<T>(part, x, y, d, args)`; out has the shape of in[0]
  static constexpr bool random = false;            ///< draws one random word an element, in training
  static constexpr bool commutes = false;          ///< elementwise: the same of (x, y) and (y, x), to the last bit
  static constexpr bool in_place = false;          ///< forward may write its output over in[0]
  static constexpr bool loss = false;              ///< out is the micro-batch's share of the batch's loss, a scalar
  static constexpr bool placeholder = false;       ///< an input of the model: no kernel
  static constexpr unsigned differentiable = ~0u;  ///< bit i: in[i] may receive a cotangent
  static constexpr unsigned passes_cotangent = 0;  ///< bit i: the cotangent of in[i] is that of out, unchanged
  static constexpr unsigned saves_inputs = 0;      ///< bit i: backward reads in[i]
  static constexpr bool saves_output = false;      ///< backward reads out
  static constexpr bool per_time = false;          ///< out at a time needs that time of in[..] only, and `state`
  static constexpr bool reuses_input = false;      ///< backward may write the cotangent of in[0] over in[0]
  static constexpr int places = -1;                ///< the input whose integers are places in memory; -1: none
  /// How many places there are, and integers that stand for none. Kernels check neither.
  static constexpr i64 place_count(const op_view&) { return 0; }
  static constexpr bool is_no_place(const attributes&, i64) { return false; }
  /// Largest `time` that the operator can take; 0: any.
  static constexpr i64 time_limit(const attributes&) { return 0; }
  /// A loss only: terms that count in a micro-batch's mean, given the data of in[1] (host memory).
  static constexpr u64 counted(const op_view& v, const void*) { return u64(v.in[0].count()); }
  /// Elements of `real` that forward leaves for backward, beyond inputs and output.
  static constexpr u64 saved(const op_view&) { return 0; }
  /// Elements of `real` that a kernel may scribble on while it runs.
  static constexpr u64 workspace(const op_view&) { return 0; }
  /// Elements of `real` that decoding keeps of earlier times of a sequence (keys and values), for out's `time` at most.
  static constexpr u64 state(const op_view&) { return 0; }
  /// Floating-point operations of one forward.
  static constexpr u64 flops(const op_view& v) { return u64(v.out.count()); }
  /// ... of the cotangents of all inputs, and of the parameters' gradients.
  static constexpr u64 flops_backward_input(const op_view& v) { return u64(v.out.count()); }
  static constexpr u64 flops_backward_weight(const op_view&) { return 0; }
};

/// An operator: a name that a user would say, and the members of `operator_base`.
template <class Op>
concept graph_operator = std::derived_from<Op, operator_base> && requires(const op_view& v) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::flops(v) } -> std::convertible_to<u64>;
};

namespace detail {
template <class Op, class T>
FL_HD constexpr T scalar_of(scalar_part part, T x, T y, T d, const scalar_args& a) {
  return Op::template apply<T>(part, x, y, d, a);
}
}  // namespace detail

/// The same facts as values: a node points to them.
struct operator_traits {
  std::string_view name;
  bool elementwise = false, random = false, commutes = false, in_place = false, loss = false, placeholder = false, per_time = false;
  unsigned differentiable = 0, passes_cotangent = 0, saves_inputs = 0;
  bool saves_output = false, reuses_input = false;
  int places = -1;
  i64 (*place_count)(const op_view&) = nullptr;
  bool (*is_no_place)(const attributes&, i64) = nullptr;
  i64 (*time_limit)(const attributes&) = nullptr;
  u64 (*counted)(const op_view&, const void*) = nullptr;
  u64 (*saved)(const op_view&) = nullptr;
  u64 (*workspace)(const op_view&) = nullptr;
  u64 (*state)(const op_view&) = nullptr;
  u64 (*flops)(const op_view&) = nullptr;
  u64 (*flops_backward_input)(const op_view&) = nullptr;
  u64 (*flops_backward_weight)(const op_view&) = nullptr;
  scalar_function<float> scalar_f32 = nullptr;
  scalar_function<double> scalar_f64 = nullptr;
};

template <class Op>
struct check_operator {
  static_assert(std::derived_from<Op, operator_base>, "an operator derives from fusionllm::operator_base");
  static_assert(
      requires { std::string_view(Op::name); }, "an operator has a static constexpr std::string_view name");
  static_assert(
      !Op::elementwise || requires(scalar_args a) { Op::template apply<float>(scalar_part::value, 0.f, 0.f, 0.f, a); },
      "an elementwise operator has a static T apply<T>(scalar_part, T x, T y, T d, const scalar_args&)");
  static constexpr operator_traits make() {
    operator_traits t{};
    t.name = Op::name;
    t.elementwise = Op::elementwise;
    t.random = Op::random;
    t.commutes = Op::commutes;
    t.in_place = Op::in_place;
    t.loss = Op::loss;
    t.placeholder = Op::placeholder;
    t.per_time = Op::per_time || Op::elementwise;
    t.differentiable = Op::differentiable;
    t.passes_cotangent = Op::passes_cotangent;
    t.saves_inputs = Op::saves_inputs;
    t.saves_output = Op::saves_output;
    t.reuses_input = Op::reuses_input;
    t.places = Op::places;
    t.place_count = &Op::place_count;
    t.is_no_place = &Op::is_no_place;
    t.time_limit = &Op::time_limit;
    t.counted = &Op::counted;
    t.saved = &Op::saved;
    t.workspace = &Op::workspace;
    t.state = &Op::state;
    t.flops = &Op::flops;
    t.flops_backward_input = &Op::flops_backward_input;
    t.flops_backward_weight = &Op::flops_backward_weight;
    if constexpr (Op::elementwise) {
      t.scalar_f32 = &detail::scalar_of<Op, float>;
      t.scalar_f64 = &detail::scalar_of<Op, double>;
    }
    return t;
  }
};

template <class Op>
inline constexpr operator_traits traits_of = check_operator<Op>::make();

}  // namespace fusionllm::inline v0
