// SPDX-License-Identifier: Apache-2.0
// Optimizer settings and the learning rate of a step: linear warm-up, then half a cosine (Loshchilov and Hutter, arXiv
// 1608.03983, without restarts) or a straight line down to a floor.
#pragma once

#include <cmath>
#include <numbers>

#include "parameter_rules.hpp"
#include "vector_functions.hpp"

namespace fusionllm::inline v0 {

enum class optimizer_kind : u8 { adamw, sgd };
/// How the rate falls after the warm-up.
enum class rate_shape : u8 { cosine, linear };

struct optimizer_settings {
  optimizer_kind kind = optimizer_kind::adamw;
  double learning_rate = 3e-4;  ///< at the end of the warm-up
  double minimum_rate = 0;
  u64 warmup_steps = 0;
  u64 total_steps = 0;          ///< 0: the rate stays at learning_rate after the warm-up
  adamw_settings adamw;         ///< its weight decay is also sgd's
  double momentum = 0.9;        ///< sgd
  double clip_norm = 1.0;       ///< of the gradient of all parameters together; 0: no clipping
  rate_shape shape = rate_shape::cosine;
  std::vector<std::string> no_decay{};  ///< patterns of parameters without weight decay, beside norms and biases
  std::vector<std::string> freeze{};    ///< patterns of parameters that are not trained
};

/// Learning rate of step 0, 1, ...
inline double learning_rate_at(const optimizer_settings& o, u64 step) {
  if (step < o.warmup_steps) return o.learning_rate * double(step + 1) / double(o.warmup_steps);
  if (o.total_steps <= o.warmup_steps) return o.learning_rate;
  const double done = double(step - o.warmup_steps) / double(o.total_steps - o.warmup_steps);
  const double part = done < 1 ? done : 1;
  const double left = o.shape == rate_shape::linear ? 1 - part : 0.5 * (1 + std::cos(std::numbers::pi * part));
  return o.minimum_rate + (o.learning_rate - o.minimum_rate) * left;
}

/// Factor that brings a gradient of the given norm down to the clip norm.
inline double clip_scale(const optimizer_settings& o, double norm) {
  return o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0;
}

/// The numbers of the update at the end of `step`.
inline update_scalars scalars_at(const optimizer_settings& o, u64 step, double gradient_scale) {
  return {step, learning_rate_at(o, step), gradient_scale, o.momentum, o.adamw};
}

}  // namespace fusionllm::inline v0
