// SPDX-License-Identifier: Apache-2.0
// Building models from operator objects: `x | f` applies, `f | g` is a flat sequence, `repeat<N>(f)` is N copies with
// parameters of their own, scoped h.0, h.1, ...
#pragma once

#include <tuple>

#include "operator_object.hpp"

namespace fusionllm::inline v0 {

template <class... F>
struct sequence : operator_object_base {
  std::tuple<F...> parts;
  constexpr explicit sequence(std::tuple<F...> p) : parts(p) {}
  template <tensor_handle X>
  constexpr auto operator()(X x) const {
    return apply_from<0>(x);
  }

 private:
  template <std::size_t I, class X>
  constexpr auto apply_from(X x) const {
    if constexpr (I == sizeof...(F))
      return x;
    else
      return apply_from<I + 1>(std::get<I>(parts)(x));
  }
};

namespace detail {
template <class... F>
constexpr std::tuple<F...> parts_of(sequence<F...> s) {
  return s.parts;
}
template <operator_object F>
constexpr std::tuple<F> parts_of(F f) {
  return std::tuple<F>(f);
}
template <class... F>
constexpr sequence<F...> sequence_of(std::tuple<F...> parts) {
  return sequence<F...>(parts);
}
}  // namespace detail

template <operator_object F, operator_object G>
constexpr auto operator|(F f, G g) {
  return detail::sequence_of(std::tuple_cat(detail::parts_of(f), detail::parts_of(g)));
}
template <tensor_handle X, operator_object F>
constexpr auto operator|(X x, F f) {
  return f(x);
}

/// `f` with its parameters under the scope `n`.
template <operator_object F>
struct scoped_object : operator_object_base {
  F f;
  std::string_view scope;
  constexpr scoped_object(F f_, std::string_view n) : f(f_), scope(n) {}
  template <tensor_handle X>
  constexpr auto operator()(X x) const {
    const auto before = x.g->enter(scope);
    auto y = f(x);
    x.g->leave(before);
    return y;
  }
};
template <operator_object F>
constexpr auto scoped(std::string_view n, F f) {
  return scoped_object<F>(f, n);
}

struct repeat_op;  // the name that errors show

template <int N, operator_object F>
struct repeat_object : operator_object_base {
  F f;
  std::string_view scope;
  constexpr repeat_object(F f_, std::string_view n) : f(f_), scope(n) {}
  template <class E, class S, class G>
  constexpr auto operator()(tensor<E, S, G> x) const {
    using result = decltype(f(x));
    if constexpr (!std::is_same_v<result, tensor<E, S, G>>)
      return shape_mismatch<repeat_op, typename result::shape_type, S>{};
    else {
      const auto before = x.g->enter(scope);
      for (unsigned i = 0; i < unsigned(N); ++i) {
        const auto inner = x.g->enter_index(i);
        x = f(x);
        x.g->leave(inner);
      }
      x.g->leave(before);
      return x;
    }
  }
};
/// N copies of `f` one after another; `f` must keep the shape.
template <int N, operator_object F>
constexpr auto repeat(F f, std::string_view scope = "h") {
  return repeat_object<N, F>(f, scope);
}

}  // namespace fusionllm::inline v0
