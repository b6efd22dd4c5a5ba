// SPDX-License-Identifier: Apache-2.0
// Initial parameters, a function of (seed, name, index) alone and of exact arithmetic alone, so that every owner of a
// parameter makes the same bits on every machine.
#pragma once

#include <cmath>

#include "../core/fnv.hpp"
#include "../core/philox.hpp"
#include "../graph/node.hpp"

namespace fusionllm::inline v0 {

/// Nearly normal with mean 0 and variance 1: the sum of eight 16-bit uniforms, centred and scaled. No logarithm or
/// cosine enters, whose last bits differ between C libraries; the largest magnitude is 4.9.
constexpr double nearly_normal(const random_key& key, u64 index) {
  const philox_block b = philox(key, index);
  i64 sum = 0;
  for (u32 w : b.v) sum += i64(w & 0xFFFF) + i64(w >> 16);
  constexpr double deviation = 53509.9;  // sqrt(8 (65536^2 - 1) / 12)
  return (double(sum) - 8 * 32767.5) / deviation;
}

/// The standard deviation of a parameter that starts normal.
inline double deviation_of(const parameter_info& p) {
  const double n = double(p.count());
  if (p.init.how == initializer::kind::fan_in) return 1 / std::sqrt(3 * n / double(p.dims.rank > 1 ? p.dims.d[0] : 1));
  if (p.init.how == initializer::kind::fan_out) return std::sqrt(2 / (n / double(p.dims.rank > 1 ? p.dims.d[1] : 1)));
  return p.init.deviation;
}

template <class T>
void initialize(T* w, const parameter_info& p, u64 seed) {
  const i64 n = i64(p.count());
  const random_key key{seed, fnv().text(p.path.view()).value(), 0, ~u32(0)};
  switch (p.init.how) {
    case initializer::kind::zeros:
      for (i64 i = 0; i < n; ++i) w[i] = T(0);
      return;
    case initializer::kind::ones:
      for (i64 i = 0; i < n; ++i) w[i] = T(1);
      return;
    case initializer::kind::normal:
    case initializer::kind::fan_in:
    case initializer::kind::fan_out: {
      const double deviation = deviation_of(p);
      for (i64 i = 0; i < n; ++i) w[i] = T(deviation * nearly_normal(key, u64(i)));
      return;
    }
    case initializer::kind::uniform: {
      const double most = 1 / std::sqrt(p.init.deviation > 0 ? p.init.deviation : double(n / p.dims.d[0]));
      for (i64 i = 0; i < n; ++i) w[i] = T(most * ((double(random_word(key, u64(i))) + 0.5) / 2147483648.0 - 1));
      return;
    }
  }
}

}  // namespace fusionllm::inline v0
