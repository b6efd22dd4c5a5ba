// SPDX-License-Identifier: Apache-2.0
// Batch normalization in plain loops, a channel after the other; statistics in two passes.
#pragma once

#include <cmath>

#include "../../core/error.hpp"
#include "../../ops/batch_norm.hpp"
#include "plain_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// (batch, channels, pixels), and how to go through one channel.
struct channel_shape {
  i64 images, channels, pixels;
  explicit channel_shape(const extents& x) : images(x.d[0]), channels(x.d[1]), pixels(x.count() / (x.d[0] * x.d[1])) {}
  i64 values() const { return images * pixels; }  ///< of one channel
  i64 at(i64 image, i64 channel) const { return (image * channels + channel) * pixels; }
  template <class F>
  void each(i64 channel, F&& f) const {
    for (i64 n = 0; n < images; ++n)
      for (i64 i = at(n, channel), end = i + pixels; i < end; ++i) f(i);
  }
};

/// Errors: model, for a micro-batch that has no variance.
inline void check_batch_norm(const kernel_args& a, const channel_shape& s) {
  if (s.values() < 2)
    fail(errc::model, "batch norm ", a.op->scope.view(),
         " got one value per channel (1 sample of 1 pixel): training needs ",
         "at least 2, so use larger micro-batches or images");
}

}  // namespace detail

template <class T>
struct plain_kernel<batch_norm_op, T> {
  /// x (batch, channels, ...) -> (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance by channel
  static void forward(device_context&, const kernel_args& a) {
    const detail::channel_shape s(a.out.dims);
    const bool own = a.mode == pass::training;
    if (own) detail::check_batch_norm(a, s);
    const T* x = a.in[0].template as<const T>();
    T* y = a.out.template as<T>();
    T* saved = static_cast<T*>(a.saved);
    for (i64 c = 0; c < s.channels; ++c) {
      const T mean = own ? mean_of(s, x, c) : a.param[2].template as<const T>()[c];
      const T variance = own ? variance_of(s, x, c, mean) : a.param[3].template as<const T>()[c];
      const T scale = reciprocal(a, variance) * a.param[0].template as<const T>()[c];
      const T bias = a.param[1].template as<const T>()[c];
      s.each(c, [&](i64 i) { y[i] = (x[i] - mean) * scale + bias; });
      if (!own || !saved) continue;
      saved[c] = mean;
      saved[s.channels + c] = variance;
    }
  }

  /// With h = (x - mean) * reciprocal: dx = weight * reciprocal * (dy - mean(dy) - h * mean(dy * h)).
  static void backward_input(device_context&, const kernel_args& a) {
    T* dx = a.d_in[0].template as<T>();
    if (!dx) return;
    const detail::channel_shape s(a.d_out.dims);
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    const T* saved = static_cast<const T*>(a.saved);
    for (i64 c = 0; c < s.channels; ++c) {
      const T mean = saved[c], r = reciprocal(a, saved[s.channels + c]);
      T sum = 0, product = 0;
      s.each(c, [&](i64 i) {
        sum += dy[i];
        product += dy[i] * ((x[i] - mean) * r);
      });
      sum /= T(s.values());
      product /= T(s.values());
      const T scale = a.param[0].template as<const T>()[c] * r;
      s.each(c, [&](i64 i) { dx[i] = scale * (dy[i] - sum - (x[i] - mean) * r * product); });
    }
  }

  static void backward_weight(device_context&, const kernel_args& a) {
    const detail::channel_shape s(a.d_out.dims);
    const T* x = a.in[0].template as<const T>();
    const T* dy = a.d_out.template as<const T>();
    const T* saved = static_cast<const T*>(a.saved);
    T *d_weight = a.d_param[0].template as<T>(), *d_bias = a.d_param[1].template as<T>();
    for (i64 c = 0; c < s.channels; ++c) {
      const T mean = saved[c], r = reciprocal(a, saved[s.channels + c]);
      T sum = 0, product = 0;
      s.each(c, [&](i64 i) {
        sum += dy[i];
        product += dy[i] * ((x[i] - mean) * r);
      });
      if (d_weight) d_weight[c] += product;
      if (d_bias) d_bias[c] += sum;
    }
    add_statistics(a, s);
  }

  /// This micro-batch's share of the running mean and of the running, unbiased, variance.
  static void add_statistics(const kernel_args& a, const detail::channel_shape& s) {
    const T* saved = static_cast<const T*>(a.saved);
    T *mean = a.d_param[2].template as<T>(), *variance = a.d_param[3].template as<T>();
    const double unbiased = double(s.values()) / double(s.values() - 1);
    for (i64 c = 0; c < s.channels; ++c) {
      if (mean) mean[c] += T(a.statistic_share * double(saved[c]));
      if (variance) variance[c] += T(a.statistic_share * (unbiased * double(saved[s.channels + c])));
    }
  }

  static T reciprocal(const kernel_args& a, T variance) { return T(1) / std::sqrt(variance + T(a.op->attr.x)); }

 private:
  static T mean_of(const detail::channel_shape& s, const T* x, i64 c) {
    T sum = 0;
    s.each(c, [&](i64 i) { sum += x[i]; });
    return sum / T(s.values());
  }
  static T variance_of(const detail::channel_shape& s, const T* x, i64 c, T mean) {
    T sum = 0;
    s.each(c, [&](i64 i) { sum += (x[i] - mean) * (x[i] - mean); });
    return sum / T(s.values());
  }
};

}  // namespace fusionllm::inline v0
