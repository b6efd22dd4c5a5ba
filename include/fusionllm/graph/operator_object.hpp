// SPDX-License-Identifier: Apache-2.0
// What operator objects are made of: function objects from a tensor to a tensor, which a model is composed of by `|`.
#pragma once

#include "tensor.hpp"

namespace fusionllm::inline v0 {

/// Everything that can stand right of `|`.
struct operator_object_base {};
template <class F>
concept operator_object = std::derived_from<F, operator_object_base>;

/// An object whose parameters lie in a scope of their own. `Self` derives from it.
template <class Self>
struct named_object : operator_object_base {
  std::string_view scope;
  constexpr explicit named_object(std::string_view n) : scope(n) {}
  constexpr Self named(std::string_view n) const {
    return changed([n](Self& c) { c.scope = n; });
  }

 protected:
  /// A copy that `change` has worked on.
  template <class F>
  constexpr Self changed(F change) const {
    Self c = static_cast<const Self&>(*this);
    change(c);
    return c;
  }
};

/// Operator Op of one tensor, whose shape it keeps, without parameters.
template <class Op>
struct same_shape_object : operator_object_base {
  attributes attr{};
  constexpr same_shape_object() = default;
  constexpr explicit same_shape_object(const attributes& a) : attr(a) {}
  template <class S, class G>
  constexpr auto operator()(tensor<real, S, G> x) const {
    return record<Op, real, S>(x.g, from(x.id), {}, attr);
  }
};

}  // namespace fusionllm::inline v0
