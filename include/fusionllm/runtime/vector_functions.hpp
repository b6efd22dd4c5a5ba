// SPDX-License-Identifier: Apache-2.0
// The functions of device/vector_functions.hpp on host memory: a device's own loops where its context has overloads of
// device/adamw.hpp and device/sum_of_squares.hpp, plain ones otherwise; over the context's team if it has one.
#pragma once

#include <atomic>
#include <cstring>

#include "../compress/element.hpp"
#include "../device/sum_of_squares.hpp"
#include "../device/vector_functions.hpp"

namespace fusionllm::inline v0 {

template <class Device>
struct host_vectors {
  using T = typename Device::real;
  using context = typename Device::context;

  template <class F>
  static void split(device_context& c, i64 n, F&& f) {
    if constexpr (requires(context& x) { x.team.split(n, i64(4096), f); }) static_cast<context&>(c).team.split(n, 4096, f);
    else f(i64(0), n);
  }
  static void zero(device_context& c, void* x, u64 bytes) {
    split(c, i64(bytes), [&](i64 begin, i64 end) { std::memset(static_cast<std::byte*>(x) + begin, 0, std::size_t(end - begin)); });
  }
  static void widen(device_context&, dtype, const void* x, double* number) { *number = double(*static_cast<const T*>(x)); }
  static void add(device_context& c, dtype, void* out, const void* a, const void* b, i64 n) {
    split(c, n, [&](i64 begin, i64 end) {
      T* o = static_cast<T*>(out);
      const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
      for (i64 i = begin; i < end; ++i) o[i] = x[i] + y[i];
    });
  }
  static void sums_of_squares(device_context& c, parameter_updates all, double* sums) {
    for (const parameter_update& p : all) {
      const T* x = static_cast<const T*>(p.gradient);
      if constexpr (requires(context& k) { fusionllm::sum_of_squares(k, x, p.count); })
        *sums++ = fusionllm::sum_of_squares(static_cast<context&>(c), x, p.count);
      else *sums++ = fusionllm::sum_of_squares(x, p.count);
    }
  }
  static void adamw(device_context& c, parameter_updates all, const update_scalars& s) {
    for (const parameter_update& p : all) {
      const auto f = adamw_factors_of<T>(s.adamw, s.step + 1, s.learning_rate, s.gradient_scale, p.decays);
      T *w = static_cast<T*>(p.weight), *m = static_cast<T*>(p.m), *v = static_cast<T*>(p.v);
      const T* g = static_cast<const T*>(p.gradient);
      if constexpr (requires(context& k) { adamw_update(k, w, g, m, v, p.count, f); }) adamw_update(static_cast<context&>(c), w, g, m, v, p.count, f);
      else adamw_update(w, g, m, v, p.count, f);
    }
  }
  /// m = momentum m + (g + decay w); w -= rate m, as PyTorch without Nesterov.
  static void sgd(device_context& c, parameter_updates all, const update_scalars& s) {
    for (const parameter_update& p : all) {
      const T rate = T(s.learning_rate), momentum = T(s.momentum), decay = T(p.decays ? s.adamw.weight_decay : 0), scale = T(s.gradient_scale);
      split(c, p.count, [&](i64 begin, i64 end) {
        T *w = static_cast<T*>(p.weight), *m = static_cast<T*>(p.m);
        const T* g = static_cast<const T*>(p.gradient);
        for (i64 i = begin; i < end; ++i) {
          m[i] = momentum * m[i] + (g[i] * scale + decay * w[i]);
          w[i] = w[i] - rate * m[i];
        }
      });
    }
  }
  static void decay(device_context& c, void* w_, const void* g_, i64 n, double kept) {
    split(c, n, [&](i64 begin, i64 end) {
      T* w = static_cast<T*>(w_);
      const T* g = static_cast<const T*>(g_);
      for (i64 i = begin; i < end; ++i) w[i] = T(kept) * w[i] + g[i];
    });
  }
  static void search(device_context& c, dtype, const void* x, i64 n, u32* found) {
    std::atomic<bool> bad = false;
    split(c, n, [&](i64 begin, i64 end) {
      if (detail::first_non_finite_element(static_cast<const T*>(x) + begin, dtype_of<T>, end - begin) >= 0) bad = true;
    });
    if (bad) *found = 1;
  }
};

template <class Device>
inline constexpr vector_functions vector_functions_of{&host_vectors<Device>::add, &host_vectors<Device>::search, &host_vectors<Device>::zero,
                                                      &host_vectors<Device>::widen, &host_vectors<Device>::decay, &host_vectors<Device>::sums_of_squares,
                                                      &host_vectors<Device>::adamw, &host_vectors<Device>::sgd};

}  // namespace fusionllm::inline v0
