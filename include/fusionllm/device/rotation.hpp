// SPDX-License-Identifier: Apache-2.0
// The turn of rotary positions at one time: cosines and sines are made in double, so that they are the nearest of every
// type. Shared by all devices whose memory the host reads.
#pragma once

#include <cmath>

#include "../ops/rotary.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// Where (batch, time, heads * width) lies, and what turns.
struct rotation {
  i64 sequences, steps, features, half;
  i64 offset = 0;  ///< the position of time 0, where a cache has the earlier ones
  double theta;
  i64 past = 0;  ///< times before the first
  explicit rotation(const kernel_args& a) : rotation(*a.op, a.out.dims) { past = a.past; }
  rotation(const node& op, const extents& d)
      : sequences(d.d[0]), steps(d.d[1]), features(d.d[2]), half(op.attr.n[0] / 2), theta(op.attr.x) {}

  /// cosine and sine (half) of time t; backward turns the other way.
  template <class T>
  void angles(i64 t, bool backward, T* cosine, T* sine) const {
    for (i64 i = 0; i < half; ++i) {
      const double angle = double(past + t) * std::pow(theta, -double(i) / double(half));
      cosine[i] = T(std::cos(angle));
      sine[i] = T(backward ? -std::sin(angle) : std::sin(angle));
    }
  }
  /// Turns time t of every sequence and head; y may be x.
  template <class T>
  void turn(i64 t, const T* cosine, const T* sine, const T* x, T* y) const {
    for (i64 b = 0; b < sequences; ++b)
      for (i64 h = 0; h < features; h += 2 * half) {
        const i64 at = (b * steps + t) * features + h;
        turn_head(cosine, sine, x + at, y + at);
      }
  }

 private:
  template <class T>
  void turn_head(const T* cosine, const T* sine, const T* x, T* y) const {
    for (i64 i = 0; i < half; ++i) {
      const T a = x[i], b = x[half + i];
      y[i] = a * cosine[i] - b * sine[i];
      y[half + i] = b * cosine[i] + a * sine[i];
    }
  }
};

}  // namespace fusionllm::inline v0
