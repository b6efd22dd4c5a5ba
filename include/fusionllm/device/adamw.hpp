// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter, arXiv 1711.05101): the update of one element as one formula in one order, so that every
// device's loop gives the same bits (its operations are all exactly rounded, and none may be contracted).
#pragma once

#include <cmath>

#include "../core/config.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

struct adamw_settings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

/// What an update of one parameter in one step needs, rounded once.
template <class T>
struct adamw_factors {
  T clip;    ///< the gradient is multiplied by it
  T blend1;  ///< 1 - beta1
  T beta2, blend2;
  T epsilon;
  T keep;  ///< 1 - learning rate * decay
  T rate;  ///< learning rate / (1 - beta1^step)
  T root;  ///< 1 / sqrt(1 - beta2^step)
};

/// `step` counts from 1. Decay applies if the parameter `decays`.
template <class T>
adamw_factors<T> adamw_factors_of(const adamw_settings& s, u64 step, double learning_rate, double clip, bool decays) {
  const double t = double(step);
  return {T(clip),
          T(1 - s.beta1),
          T(s.beta2),
          T(1 - s.beta2),
          T(s.epsilon),
          T(1 - learning_rate * (decays ? s.weight_decay : 0)),
          T(learning_rate / (1 - std::pow(s.beta1, t))),
          T(1 / std::sqrt(1 - std::pow(s.beta2, t)))};
}

/// One element: m and v are the running means of the gradient and its square.
template <class T>
FL_HD inline void adamw_element(T& weight, T gradient, T& m, T& v, const adamw_factors<T>& f) {
  const T g = gradient * f.clip;
  m = m + (g - m) * f.blend1;
  v = v * f.beta2 + g * g * f.blend2;
  weight = weight * f.keep - f.rate * (m / (std::sqrt(v) * f.root + f.epsilon));
}

/// n elements in plain code.
template <class T>
void adamw_update(T* weight, const T* gradient, T* m, T* v, i64 n, const adamw_factors<T>& f) {
  for (i64 i = 0; i < n; ++i) adamw_element(weight[i], gradient[i], m[i], v[i], f);
}

}  // namespace fusionllm::inline v0
