// SPDX-License-Identifier: Apache-2.0
// Batch normalization: channels over the team, so that each channel's sums are one member's, over images in order.
#pragma once

#include "../reference/batch_norm.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

template <>
struct kernel<batch_norm_op, cpu> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) {
    const detail::channel_shape s(a.out.dims);
    const bool own = a.mode == pass::training;
    if (own) detail::check_batch_norm(a, s);
    const float* x = a.in[0].as<const float>();
    float *y = a.out.as<float>(), *saved = static_cast<float*>(a.saved);
    c.team.split(s.channels, 1, [&](i64 begin, i64 end) {
      for (i64 k = begin; k < end; ++k) {
        const float mean = own ? mean_of(c, s, x, k) : a.param[2].as<const float>()[k];
        const float variance = own ? variance_of(c, s, x, k, mean) : a.param[3].as<const float>()[k];
        const float scale = reciprocal(a, variance) * a.param[0].as<const float>()[k];
        for (i64 n = 0; n < s.images; ++n)
          c.loops.normalize(x + s.at(n, k), mean, scale, a.param[1].as<const float>()[k], y + s.at(n, k), s.pixels);
        if (!own || !saved) continue;
        saved[k] = mean;
        saved[s.channels + k] = variance;
      }
    });
  }

  /// With h = (x - mean) * r: dx = weight * r * (dy - mean(dy) - h * mean(dy * h)).
  static void backward_input(cpu_context& c, const kernel_args& a) {
    float* dx = a.d_in[0].as<float>();
    if (!dx) return;
    const detail::channel_shape s(a.d_out.dims);
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float *saved = static_cast<const float*>(a.saved), *partial = a.d_partial[0].as<const float>();
    c.team.split(s.channels, 1, [&](i64 begin, i64 end) {
      for (i64 k = begin; k < end; ++k) {
        const float mean = saved[k], r = reciprocal(a, saved[s.channels + k]);
        const sums d = sums_of(c, s, x, dy, k, mean);
        const float slope = float(d.product / double(s.values()) * double(r) * double(r));
        for (i64 n = 0; n < s.images; ++n) {
          const i64 at = s.at(n, k);
          c.loops.batch_norm_backward(x + at, dy + at, mean, float(d.sum / double(s.values())), slope,
                                      a.param[0].as<const float>()[k] * r, partial ? partial + at : nullptr, dx + at,
                                      s.pixels);
        }
      }
    });
  }

  static void backward_weight(cpu_context& c, const kernel_args& a) {
    const detail::channel_shape s(a.d_out.dims);
    const float *x = a.in[0].as<const float>(), *dy = a.d_out.as<const float>();
    const float* saved = static_cast<const float*>(a.saved);
    float *d_weight = a.d_param[0].as<float>(), *d_bias = a.d_param[1].as<float>();
    if (d_weight || d_bias)
      c.team.split(s.channels, 1, [&](i64 begin, i64 end) {
        for (i64 k = begin; k < end; ++k) {
          const sums d = sums_of(c, s, x, dy, k, saved[k]);
          if (d_weight) d_weight[k] += float(d.product * double(reciprocal(a, saved[s.channels + k])));
          if (d_bias) d_bias[k] += float(d.sum);
        }
      });
    plain_kernel<batch_norm_op, float>::add_statistics(a, s);
  }

 private:
  static float reciprocal(const kernel_args& a, float variance) {
    return plain_kernel<batch_norm_op, float>::reciprocal(a, variance);
  }
  static float mean_of(cpu_context& c, const detail::channel_shape& s, const float* x, i64 k) {
    double sum = 0;
    for (i64 n = 0; n < s.images; ++n) sum += c.loops.sum_of(x + s.at(n, k), s.pixels);
    return float(sum / double(s.values()));
  }
  static float variance_of(cpu_context& c, const detail::channel_shape& s, const float* x, i64 k, float mean) {
    double sum = 0;
    for (i64 n = 0; n < s.images; ++n) sum += c.loops.sum_of_squared_deviations(x + s.at(n, k), mean, s.pixels);
    return float(sum / double(s.values()));
  }
  struct sums {
    double sum, product;  ///< of dy; of dy * (x - mean)
  };
  static sums sums_of(cpu_context& c, const detail::channel_shape& s, const float* x, const float* dy, i64 k,
                      float mean) {
    double d[2] = {};
    for (i64 n = 0; n < s.images; ++n) c.loops.batch_norm_sums(x + s.at(n, k), dy + s.at(n, k), mean, s.pixels, d);
    return {d[0], d[1]};
  }
};

}  // namespace fusionllm::inline v0
