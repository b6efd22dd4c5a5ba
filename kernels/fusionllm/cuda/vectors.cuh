// SPDX-License-Identifier: Apache-2.0
// What the runtime does to vectors, on the GPU: one launch for the updates of all parameters, and sums in shared memory.
#pragma once

#include <fusionllm/device/vector_functions.hpp>

#include "launch.cuh"
#include "squares.hpp"
#include "updates.hpp"
#include "vectors.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The list of parameters as kernels read it, in the GPU's memory; sent again with every use, in the order of the stream.
class gpu_update_list {
 public:
  explicit gpu_update_list(cuda::context& c) : context_(c) {}

  update_list put(parameter_updates all) {
    items_.clear();
    for (const parameter_update& p : all)
      items_.push_back({static_cast<float*>(p.weight), static_cast<const float*>(p.gradient), static_cast<float*>(p.m),
                        static_cast<float*>(p.v), nullptr, p.count, p.decays});
    const i64 pieces = place_pieces(items_);
    list_.grow(context_, items_.size() * sizeof(update_item));
    sums_.grow(context_, u64(pieces) * sizeof(double));
    context_.upload(list_.data(), items_.data(), items_.size() * sizeof(update_item));
    return {list_.as<update_item>(), i64(items_.size()), pieces};
  }
  double* sums() const { return sums_.as<double>(); }

 private:
  cuda::context& context_;
  std::vector<update_item> items_;
  device_array list_, sums_;
};

template <class T>
struct widen_body {
  const T* x;
  double* number;
  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_item(team, 1, [&](i64) { *number = double(float(*x)); });
  }
};

template <class T>
struct gpu_vector_functions {
  static cuda::context& of(device_context& c) { return static_cast<cuda::context&>(c); }

  static void add(device_context& c, dtype type, void* out, const void* a, const void* b, i64 n) {
    const auto run = [&]<class E>(E*) {
      add_vectors<gpu_launch>(of(c), static_cast<E*>(out), static_cast<const E*>(a), static_cast<const E*>(b), n);
    };
    type == dtype::f32 ? run(static_cast<float*>(nullptr)) : run(static_cast<T*>(nullptr));
  }
  static void search(device_context& c, dtype type, const void* x, i64 n, u32* found) {
    if (type == dtype::f32) search_non_finite<gpu_launch>(of(c), static_cast<const float*>(x), n, found);
    else search_non_finite<gpu_launch>(of(c), static_cast<const T*>(x), n, found);
  }
  static void zero(device_context& c, void* x, u64 bytes) { of(c).zero(x, bytes); }
  static void widen(device_context& c, dtype type, const void* x, double* number) {
    if (type == dtype::f32) gpu_launch::items(of(c), 1, widen_body<float>{static_cast<const float*>(x), number}, "launch a copy");
    else gpu_launch::items(of(c), 1, widen_body<T>{static_cast<const T*>(x), number}, "launch a copy");
  }
  static void decay(device_context& c, void* w, const void* g, i64 n, double kept) {
    decay_vector<gpu_launch>(of(c), static_cast<float*>(w), static_cast<const float*>(g), n, kept);
  }
  static void sums_of_squares(device_context& c, parameter_updates all, double* sums) {
    auto& kept = of(c).template part<gpu_update_list>();
    const update_list list = kept.put(all);
    sum_of_squares_all<gpu_launch>(of(c), list, sums, kept.sums());
  }
  static void adamw(device_context& c, parameter_updates all, const update_scalars& s) {
    const update_list list = of(c).template part<gpu_update_list>().put(all);
    const auto factors = [&](bool decays) {
      return adamw_factors_of<float>(s.adamw, s.step + 1, s.learning_rate, s.gradient_scale, decays);
    };
    adamw_all<gpu_launch>(of(c), list, factors(false), factors(true));
  }
  static void sgd(device_context& c, parameter_updates all, const update_scalars& s) {
    const update_list list = of(c).template part<gpu_update_list>().put(all);
    const auto factors = [&](double decay) {
      return sgd_factors{float(s.learning_rate), float(s.momentum), float(decay), float(s.gradient_scale)};
    };
    sgd_all<gpu_launch>(of(c), list, factors(0), factors(s.adamw.weight_decay));
  }
};

}  // namespace detail

/// T: of activations.
template <class T>
inline constexpr vector_functions gpu_vectors{
    &detail::gpu_vector_functions<T>::add,   &detail::gpu_vector_functions<T>::search,
    &detail::gpu_vector_functions<T>::zero,  &detail::gpu_vector_functions<T>::widen,
    &detail::gpu_vector_functions<T>::decay,
    &detail::gpu_vector_functions<T>::sums_of_squares, &detail::gpu_vector_functions<T>::adamw,
    &detail::gpu_vector_functions<T>::sgd};

}  // namespace fusionllm::inline v0
