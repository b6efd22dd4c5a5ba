// SPDX-License-Identifier: Apache-2.0
// The handles that `define` works with, and what can be said of them directly: inputs, parameters, outputs. A handle
// carries its element type and shape as types and is otherwise a node's number.
#pragma once

#include "placeholder.hpp"
#include "tracer.hpp"

namespace fusionllm::inline v0 {

template <class Element, class Shape, class Tracer>
struct tensor {
  using element = Element;
  using shape_type = Shape;
  using tracer_type = Tracer;
  Tracer* g;
  int id;
};

template <class X>
concept tensor_handle = requires(X x) {
  typename X::element;
  typename X::shape_type;
  x.g;
  x.id;
};

template <class Shape, class Tracer>
struct parameter_handle {
  Tracer* g;
  int id;
};

/// A wrong shape is an incomplete type whose name is the message: operator, shape found, shape expected.
template <class Operator, class Found, class Expected>
struct shape_mismatch;
/// Descriptions of what was expected, for `shape_mismatch`.
template <i64 N>
struct last_extent;
template <i64 N>
struct last_extent_divisible_by;
template <int Rank>
struct rank_of;
struct fixed_last_extent;

/// Records operator Op with the given inputs; the way every operator object makes its result.
template <class Op, class Element, class Shape, class Tracer>
constexpr tensor<Element, Shape, Tracer> record(Tracer* g, const std::array<int, max_inputs>& in,
                                                const parameter_slots& params = {},
                                                const attributes& attr = {}) {
  return {g, g->template push<Op>(element_of<Element>, extents_of<Shape>(), in, params, attr)};
}
constexpr std::array<int, max_inputs> from(int a, int b = -1, int c = -1) { return {a, b, c, -1, -1}; }

/// A named input of the model, e.g. `input<i32, batch, time>(g, "tokens")`.
template <class Element, i64... D, class Tracer>
constexpr auto input(Tracer& g, std::string_view n) {
  auto t = record<placeholder_op, Element, shape<D...>>(&g, from(-1));
  g.name_input(t.id, n);
  return t;
}

/// A parameter that the model holds itself, e.g. to use it more than once.
template <i64... D, class Tracer>
constexpr auto parameter(Tracer& g, std::string_view n, initializer init = normal(0.02), bool decays = true) {
  return parameter_handle<shape<D...>, Tracer>{&g, g.add_parameter(n, extents_of<shape<D...>>(), init, decays)};
}

/// Names a tensor, so that it can be read, predicted and generated from. Returns it.
template <class Element, class Shape, class Tracer>
constexpr auto output(std::string_view n, tensor<Element, Shape, Tracer> x) {
  x.g->add_output(x.id, n);
  return x;
}

}  // namespace fusionllm::inline v0
