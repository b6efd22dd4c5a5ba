// SPDX-License-Identifier: Apache-2.0
// A trainer as an object inside a program that owns its main loop, its memory and its output: a heat equation is solved
// step by step, a network learns the solver's step from the solver's own arrays, and is then asked to take over.
// ctest:
#include <fusionllm/fusionllm.hpp>

#include <cmath>
#include <cstdio>
namespace fl = fusionllm;

constexpr int cells = 32;

struct surrogate {  // the change of a temperature profile in one time step
  static constexpr auto define(auto& g) {
    auto now = fl::input<fl::real, fl::batch, cells>(g, "now");
    auto next = fl::input<fl::real, fl::batch, cells>(g, "next");
    auto step = fl::residual(fl::linear<64>.named("in") | fl::linear<cells>.named("out"));
    return fl::mean_squared_error(fl::output("guess", now | step), next);
  }
};

// The program's own solver: explicit Euler with fixed ends.
void solve(const float* u, float* v) {
  for (int i = 0; i < cells; ++i) {
    const float left = i ? u[i - 1] : 0, right = i + 1 < cells ? u[i + 1] : 0;
    v[i] = u[i] + 0.2f * (left - 2 * u[i] + right);
  }
}

int main() {
  constexpr int rods = 16;
  std::vector<float> u(rods * cells), v(rods * cells), guess(cells);
  fl::trainer<surrogate> learner({.batch = rods, .optimizer = {.learning_rate = 3e-3, .adamw = {.weight_decay = 0}}});
  const auto restart = [&](fl::u64 run) {
    for (fl::u64 i = 0; i < u.size(); ++i) u[i] = fl::uniform(fl::random_word({.seed = 7, .step = run}, i)) - 0.5f;
  };
  for (fl::u64 run = 0; run < 100; ++run) {
    restart(run);
    for (int t = 0; t < 10; ++t) {  // the solver's own loop
      for (int r = 0; r < rods; ++r) solve(&u[std::size_t(r * cells)], &v[std::size_t(r * cells)]);
      learner.step({{"now", std::span(u), {rods, cells}}, {"next", std::span(v), {rods, cells}}});
      std::swap(u, v);
    }
  }
  double error = 0, change = 0;
  restart(1000);  // a profile that it has not seen
  learner.predict({{"now", std::span(std::as_const(u)).first(cells), {1, cells}}}, {"guess", std::span(guess), {1, cells}});
  solve(u.data(), v.data());
  for (std::size_t i = 0; i < cells; ++i) {
    error += std::pow(guess[i] - v[i], 2);
    change += std::pow(u[i] - v[i], 2);
  }
  const fl::tensor_ref weight = learner.parameter("in.weight");
  std::printf("%llu steps; squared error %.2e of a change of %.2e; in.weight[0] = %.4f\n",
              static_cast<unsigned long long>(learner.steps()), error, change, double(weight.as<float>()[0]));
  return error < 0.25 * change ? 0 : 1;
}
