// SPDX-License-Identifier: Apache-2.0
// What the runtime does to vectors outside of operators, as a table, so that it does not depend on a device's type.
// Every function gives the same bits for every number of threads.
#pragma once

#include <cmath>
#include <cstring>

#include "../device/kernel.hpp"

namespace fusionllm::inline v0 {

/// One update's numbers, the same for all parameters but `decay`.
struct update_scalars {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double correction1 = 1, correction2 = 1;  ///< 1 - beta^t
  double momentum = 0;
  double decay = 0;                         ///< weight decay of this parameter
  double gradient_scale = 1;                ///< of global-norm clipping
};

/// n elements of the device's real type, contiguous.
struct vector_functions {
  void (*zero)(device_context&, void* x, i64 n);
  void (*add)(device_context&, void* out, const void* a, const void* b, i64 n);  ///< out = a + b; out may be a or b
  double (*sum_of_squares)(device_context&, const void* x, i64 n);
  void (*adamw)(device_context&, void* w, const void* g, void* m, void* v, i64 n, const update_scalars&);
  void (*sgd)(device_context&, void* w, const void* g, void* m, i64 n, const update_scalars&);
};

/// Plain loops. Sums are taken in blocks of 4096, then over blocks.
template <class T>
struct host_vectors {
  static void zero(device_context&, void* x, i64 n) { std::memset(x, 0, std::size_t(n) * sizeof(T)); }
  static void add(device_context&, void* out, const void* a, const void* b, i64 n) {
    T* o = static_cast<T*>(out);
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    for (i64 i = 0; i < n; ++i) o[i] = x[i] + y[i];
  }
  static double sum_of_squares(device_context&, const void* x, i64 n) {
    const T* p = static_cast<const T*>(x);
    double total = 0;
    for (i64 begin = 0; begin < n; begin += 4096) {
      const i64 end = begin + 4096 < n ? begin + 4096 : n;
      double block = 0;
      for (i64 i = begin; i < end; ++i) block += double(p[i]) * double(p[i]);
      total += block;
    }
    return total;
  }
  /// AdamW (Loshchilov and Hutter, arXiv 1711.05101), in PyTorch's order of operations.
  static void adamw(device_context&, void* w_, const void* g_, void* m_, void* v_, i64 n, const update_scalars& s) {
    T *w = static_cast<T*>(w_), *m = static_cast<T*>(m_), *v = static_cast<T*>(v_);
    const T* g = static_cast<const T*>(g_);
    const T keep = T(1 - s.learning_rate * s.decay), step = T(s.learning_rate / s.correction1);
    const T root = T(std::sqrt(s.correction2)), scale = T(s.gradient_scale), epsilon = T(s.epsilon);
    const T b1 = T(s.beta1), b2 = T(s.beta2), c1 = T(1 - s.beta1), c2 = T(1 - s.beta2);
    for (i64 i = 0; i < n; ++i) {
      const T x = g[i] * scale;
      m[i] = b1 * m[i] + c1 * x;
      v[i] = b2 * v[i] + c2 * x * x;
      w[i] = w[i] * keep - step * (m[i] / (std::sqrt(v[i]) / root + epsilon));
    }
  }
  static void sgd(device_context&, void* w_, const void* g_, void* m_, i64 n, const update_scalars& s) {
    T *w = static_cast<T*>(w_), *m = static_cast<T*>(m_);
    const T* g = static_cast<const T*>(g_);
    const T rate = T(s.learning_rate), momentum = T(s.momentum), decay = T(s.decay), scale = T(s.gradient_scale);
    for (i64 i = 0; i < n; ++i) {
      m[i] = momentum * m[i] + (g[i] * scale + decay * w[i]);
      w[i] = w[i] - rate * m[i];
    }
  }
};

template <class T>
inline constexpr vector_functions host_vector_functions{&host_vectors<T>::zero, &host_vectors<T>::add,
                                                        &host_vectors<T>::sum_of_squares, &host_vectors<T>::adamw,
                                                        &host_vectors<T>::sgd};

}  // namespace fusionllm::inline v0
