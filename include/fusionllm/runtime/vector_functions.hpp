// SPDX-License-Identifier: Apache-2.0
// What the runtime does to vectors outside of operators, as a table, so that it does not depend on a device's type.
// Every function gives the same bits for every number of threads.
#pragma once

#include <atomic>
#include <cstring>

#include "../compress/element.hpp"
#include "../device/adamw.hpp"
#include "../device/kernel.hpp"
#include "../device/sum_of_squares.hpp"

namespace fusionllm::inline v0 {

/// One update's numbers, the same for all parameters but for the decay.
struct update_scalars {
  u64 step = 0;               ///< 0, 1, ...
  double learning_rate = 0;
  double gradient_scale = 1;  ///< of global-norm clipping
  double momentum = 0;        ///< sgd
  adamw_settings adamw;       ///< with the decay of all parameters that decay
};

/// n elements of the device's real type, contiguous.
struct vector_functions {
  void (*zero)(device_context&, void* x, i64 n);
  void (*add)(device_context&, void* out, const void* a, const void* b, i64 n);  ///< out = a + b; out may be a or b
  double (*sum_of_squares)(device_context&, const void* x, i64 n);
  void (*adamw)(device_context&, void* w, const void* g, void* m, void* v, i64 n, bool decays, const update_scalars&);
  void (*sgd)(device_context&, void* w, const void* g, void* m, i64 n, bool decays, const update_scalars&);
  void (*decay)(device_context&, void* w, const void* g, i64 n, double kept);  ///< w = kept w + g
  bool (*finite)(device_context&, const void* x, i64 n);                         ///< no infinity, no NaN
};

/// On host memory: a device's own loops where its context has overloads of device/adamw.hpp and
/// device/sum_of_squares.hpp, plain ones otherwise; over the context's team if it has one.
template <class Device>
struct host_vectors {
  using T = typename Device::real;
  using context = typename Device::context;

  template <class F>
  static void split(device_context& c, i64 n, F&& f) {
    if constexpr (requires(context& x) { x.team.split(n, i64(4096), f); }) static_cast<context&>(c).team.split(n, 4096, f);
    else f(i64(0), n);
  }
  static void zero(device_context& c, void* x, i64 n) {
    split(c, n, [&](i64 begin, i64 end) { std::memset(static_cast<T*>(x) + begin, 0, std::size_t(end - begin) * sizeof(T)); });
  }
  static void add(device_context& c, void* out, const void* a, const void* b, i64 n) {
    split(c, n, [&](i64 begin, i64 end) {
      T* o = static_cast<T*>(out);
      const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
      for (i64 i = begin; i < end; ++i) o[i] = x[i] + y[i];
    });
  }
  static double sum_of_squares(device_context& c, const void* x, i64 n) {
    const T* p = static_cast<const T*>(x);
    if constexpr (requires(context& k) { fusionllm::sum_of_squares(k, p, n); }) return fusionllm::sum_of_squares(static_cast<context&>(c), p, n);
    else return fusionllm::sum_of_squares(p, n);
  }
  static void adamw(device_context& c, void* w, const void* g, void* m, void* v, i64 n, bool decays, const update_scalars& s) {
    const auto f = adamw_factors_of<T>(s.adamw, s.step + 1, s.learning_rate, s.gradient_scale, decays);
    T *W = static_cast<T*>(w), *M = static_cast<T*>(m), *V = static_cast<T*>(v);
    const T* G = static_cast<const T*>(g);
    if constexpr (requires(context& k) { adamw_update(k, W, G, M, V, n, f); }) adamw_update(static_cast<context&>(c), W, G, M, V, n, f);
    else adamw_update(W, G, M, V, n, f);
  }
  /// m = momentum m + (g + decay w); w -= rate m, as PyTorch without Nesterov.
  static void sgd(device_context& c, void* w_, const void* g_, void* m_, i64 n, bool decays, const update_scalars& s) {
    const T rate = T(s.learning_rate), momentum = T(s.momentum), decay = T(decays ? s.adamw.weight_decay : 0), scale = T(s.gradient_scale);
    split(c, n, [&](i64 begin, i64 end) {
      T *w = static_cast<T*>(w_), *m = static_cast<T*>(m_);
      const T* g = static_cast<const T*>(g_);
      for (i64 i = begin; i < end; ++i) {
        m[i] = momentum * m[i] + (g[i] * scale + decay * w[i]);
        w[i] = w[i] - rate * m[i];
      }
    });
  }
  static void decay(device_context& c, void* w_, const void* g_, i64 n, double kept) {
    split(c, n, [&](i64 begin, i64 end) {
      T* w = static_cast<T*>(w_);
      const T* g = static_cast<const T*>(g_);
      for (i64 i = begin; i < end; ++i) w[i] = T(kept) * w[i] + g[i];
    });
  }
  static bool finite(device_context& c, const void* x, i64 n) {
    std::atomic<bool> good = true;
    split(c, n, [&](i64 begin, i64 end) {
      if (detail::first_non_finite_element(static_cast<const T*>(x) + begin, dtype_of<T>, end - begin) >= 0) good = false;
    });
    return good;
  }
};

template <class Device>
inline constexpr vector_functions vector_functions_of{&host_vectors<Device>::zero, &host_vectors<Device>::add,
                                                      &host_vectors<Device>::sum_of_squares, &host_vectors<Device>::adamw,
                                                      &host_vectors<Device>::sgd, &host_vectors<Device>::decay, &host_vectors<Device>::finite};

}  // namespace fusionllm::inline v0
