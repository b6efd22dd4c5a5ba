// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/optimizer.hpp>

#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u64;

TEST_CASE("the learning rate rises in a line, then falls along half a cosine to its floor and stays there") {
  fl::optimizer_settings o;
  o.learning_rate = 2;
  o.minimum_rate = 0.5;
  o.warmup_steps = 4;
  o.total_steps = 12;
  for (u64 step = 0; step < 4; ++step) CHECK(fl::learning_rate_at(o, step) == Approx(0.5 * double(step + 1)).epsilon(1e-15));
  CHECK(fl::learning_rate_at(o, 4) == 2);
  CHECK(fl::learning_rate_at(o, 6) == Approx(0.5 + 1.5 * (1 + std::sqrt(0.5)) / 2).epsilon(1e-14));
  CHECK(fl::learning_rate_at(o, 8) == Approx(1.25).epsilon(1e-14));
  CHECK(fl::learning_rate_at(o, 10) == Approx(0.5 + 1.5 * (1 - std::sqrt(0.5)) / 2).epsilon(1e-14));
  for (u64 step : {u64(12), u64(13), u64(1000000)}) CHECK(fl::learning_rate_at(o, step) == 0.5);
  for (u64 step = 5; step < 12; ++step) CHECK(fl::learning_rate_at(o, step) < fl::learning_rate_at(o, step - 1));
}

TEST_CASE("the linear schedule falls in a line to its floor and stays there") {
  fl::optimizer_settings o;
  o.shape = fl::rate_shape::linear;
  o.learning_rate = 2;
  o.minimum_rate = 0.5;
  o.warmup_steps = 4;
  o.total_steps = 12;
  CHECK(fl::learning_rate_at(o, 1) == 1);
  for (u64 step = 4; step <= 12; ++step) CHECK(fl::learning_rate_at(o, step) == Approx(2 - 1.5 * double(step - 4) / 8).epsilon(1e-15));
  CHECK(fl::learning_rate_at(o, 12) == 0.5);
  CHECK(fl::learning_rate_at(o, 1000) == 0.5);
}

TEST_CASE("without a warm-up the first step has the full rate, without an end the rate stays") {
  fl::optimizer_settings o;
  o.learning_rate = 3;
  CHECK(fl::learning_rate_at(o, 0) == 3);
  CHECK(fl::learning_rate_at(o, 1000) == 3);
  o.warmup_steps = 2;
  CHECK(fl::learning_rate_at(o, 0) == 1.5);
  CHECK(fl::learning_rate_at(o, 7) == 3);
  o.total_steps = 2;  // no step is left to fall in
  CHECK(fl::learning_rate_at(o, 7) == 3);
}

TEST_CASE("clipping brings a long gradient to the norm and leaves a short one") {
  fl::optimizer_settings o;
  o.clip_norm = 0.5;
  CHECK(fl::clip_scale(o, 2) == 0.25);
  CHECK(fl::clip_scale(o, 0.5) == 1);
  CHECK(fl::clip_scale(o, 0) == 1);
  o.clip_norm = 0;
  CHECK(fl::clip_scale(o, 1e9) == 1);
}

TEST_CASE("sgd with momentum and decay is the usual formula, with the scaled gradient") {
  struct device {
    using real = double;
    struct context : fl::device_context {};
  };
  device::context c;
  fl::optimizer_settings o;
  o.kind = fl::optimizer_kind::sgd;
  o.learning_rate = 0.1;
  o.momentum = 0.9;
  o.adamw.weight_decay = 0.01;
  std::vector<double> w{1, -2}, g{3, 4}, m{0.5, 0};
  const auto& f = fl::vector_functions_of<device>;
  f.sgd(c, std::vector<fl::parameter_update>{{w.data(), g.data(), m.data(), nullptr, 2, true}}, fl::scalars_at(o, 0, 0.5));
  CHECK(m[0] == Approx(0.9 * 0.5 + 1.5 + 0.01 * 1));
  CHECK(w[0] == Approx(1 - 0.1 * (0.45 + 1.5 + 0.01)));
  CHECK(m[1] == Approx(2 - 0.02));
  f.sgd(c, std::vector<fl::parameter_update>{{w.data(), g.data(), m.data(), nullptr, 2, false}}, fl::scalars_at(o, 1, 1));
  CHECK(m[1] == Approx(0.9 * 1.98 + 4));
}
