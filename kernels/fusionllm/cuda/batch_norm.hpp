// SPDX-License-Identifier: Apache-2.0
// Batch normalization by our own kernels, where cuDNN is not: a team a channel.
#pragma once

#include <cmath>

#include <fusionllm/device/reference/batch_norm.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// (images, channels, pixels), and a member's share of one channel.
struct norm_channels {
  i64 images, channels, pixels;
  explicit norm_channels(const channel_shape& s) : images(s.images), channels(s.channels), pixels(s.pixels) {}
  FL_HD i64 values() const { return images * pixels; }
  template <class Team, class F>
  FL_HD void each(const Team& team, i64 channel, F&& f) const {
    each_member(team, values(), [&](i64 k) { f((k / pixels * channels + channel) * pixels + k % pixels); });
  }
};

template <class T>
struct batch_norm_forward {
  static constexpr bool many_registers = true;
  norm_channels s;
  const T* x;
  const float *weight, *bias;
  const float *mean, *variance;  ///< inference: of all channels; training: null
  T* y;
  float* saved;  ///< training, may be null: means, then variances
  float epsilon;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, s.channels, [&](i64 c) {
      const float m = mean ? mean[c] : own_mean(team, c);
      const float v = mean ? variance[c] : own_variance(team, c, m);
      const float scale = 1.0f / std::sqrt(v + epsilon) * weight[c], shift = bias[c];
      s.each(team, c, [&](i64 i) { y[i] = T((float(x[i]) - m) * scale + shift); });
      if (mean || !saved || team.rank != 0) return;
      saved[c] = m;
      saved[s.channels + c] = v;
    });
  }

 private:
  template <class Team>
  FL_HD float own_mean(const Team& team, i64 c) const {
    float sum = 0;
    s.each(team, c, [&](i64 i) { sum += float(x[i]); });
    return team.sum(sum) / float(s.values());
  }
  template <class Team>
  FL_HD float own_variance(const Team& team, i64 c, float m) const {
    float sum = 0;
    s.each(team, c, [&](i64 i) { sum += (float(x[i]) - m) * (float(x[i]) - m); });
    return team.sum(sum) / float(s.values());
  }
};

/// Both directions of backward begin with the sums of dy and of dy * (x - mean) * reciprocal.
template <class T>
struct batch_norm_sums {
  norm_channels s;
  const T *x, *dy;
  const float* saved;
  float epsilon;

  FL_HD float reciprocal(i64 c) const { return 1.0f / std::sqrt(saved[s.channels + c] + epsilon); }
  template <class Team>
  FL_HD void of(const Team& team, i64 c, float& sum, float& product) const {
    const float mean = saved[c], r = reciprocal(c);
    float own_sum = 0, own_product = 0;
    s.each(team, c, [&](i64 i) {
      own_sum += float(dy[i]);
      own_product += float(dy[i]) * ((float(x[i]) - mean) * r);
    });
    sum = team.sum(own_sum);
    product = team.sum(own_product);
  }
};

template <class T>
struct batch_norm_cotangent {
  batch_norm_sums<T> sums;
  const float* weight;
  T* dx;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, sums.s.channels, [&](i64 c) {
      float sum, product;
      sums.of(team, c, sum, product);
      const float n = float(sums.s.values()), mean = sums.saved[c], r = sums.reciprocal(c), scale = weight[c] * r;
      sums.s.each(team, c, [&](i64 i) {
        dx[i] = T(scale * (float(sums.dy[i]) - sum / n - (float(sums.x[i]) - mean) * r * (product / n)));
      });
    });
  }
};

template <class T>
struct batch_norm_gradient {
  batch_norm_sums<T> sums;
  float *d_weight, *d_bias, *d_mean, *d_variance;  ///< null: not wanted
  double share;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const norm_channels& s = sums.s;
    each_row(team, s.channels, [&](i64 c) {
      float sum, product;
      sums.of(team, c, sum, product);
      if (team.rank != 0) return;
      if (d_weight) d_weight[c] += product;
      if (d_bias) d_bias[c] += sum;
      const double unbiased = double(s.values()) / double(s.values() - 1);
      if (d_mean) d_mean[c] += float(share * double(sums.saved[c]));
      if (d_variance) d_variance[c] += float(share * (unbiased * double(sums.saved[s.channels + c])));
    });
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<batch_norm_op, T, Launch> {
  /// x (batch, channels, ...) -> (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance by channel
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const detail::channel_shape shape(a.out.dims);
    const bool own = a.mode == pass::training;
    if (own) detail::check_batch_norm(a, shape);
    const detail::norm_channels s(shape);
    Launch::rows(c, s.channels, s.images * s.pixels,
                 detail::batch_norm_forward<T>{s, a.in[0].template as<const T>(), a.param[0].as<const float>(),
                                               a.param[1].as<const float>(),
                                               own ? nullptr : a.param[2].as<const float>(),
                                               own ? nullptr : a.param[3].as<const float>(), a.out.template as<T>(),
                                               static_cast<float*>(a.saved), float(a.op->attr.x)},
                 "launch a batch norm");
  }
  static void backward_input(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_in[0]) return;
    const auto sums = sums_of(a);
    Launch::rows(c, sums.s.channels, sums.s.images * sums.s.pixels,
                 detail::batch_norm_cotangent<T>{sums, a.param[0].as<const float>(), a.d_in[0].template as<T>()},
                 "launch the cotangent of a batch norm");
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    const auto sums = sums_of(a);
    Launch::rows(c, sums.s.channels, sums.s.images * sums.s.pixels,
                 detail::batch_norm_gradient<T>{sums, a.d_param[0].as<float>(), a.d_param[1].as<float>(),
                                                a.d_param[2].as<float>(), a.d_param[3].as<float>(), a.statistic_share},
                 "launch the gradients of a batch norm");
  }

 private:
  static detail::batch_norm_sums<T> sums_of(const kernel_args& a) {
    return {detail::norm_channels(detail::channel_shape(a.d_out.dims)), a.in[0].template as<const T>(),
            a.d_out.template as<const T>(), static_cast<const float*>(a.saved), float(a.op->attr.x)};
  }
};

}  // namespace fusionllm::inline v0
