// SPDX-License-Identifier: Apache-2.0
// Trains the small GPT of torch_gpt.py with fusionllm, one process. `vs_torch_bench [threads [warm-up [steps]]]` prints one JSON
// line: tokens per second by the median step.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fusionllm/ops/ops.hpp>
#include <fusionllm/trainer/trainer.hpp>

namespace fl = fusionllm;

struct small_gpt {
  static constexpr auto block = fl::residual(fl::layer_norm | fl::causal_attention<4>) |
                                fl::residual(fl::layer_norm | fl::linear<1024> | fl::gelu | fl::linear<256>);
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    auto targets = fl::input<fl::i32, fl::batch, fl::time>(g, "targets");
    auto table = fl::parameter<256, 256>(g, "wte.weight");
    auto x = fl::embedding(tokens, table) | fl::positions<128> | fl::repeat<4>(block) | fl::layer_norm;
    return fl::cross_entropy(fl::project(x, table), targets);
  }
};

static double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
static double cpu_now() { return double(std::clock()) / CLOCKS_PER_SEC; }

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int warm_up = argc > 2 ? std::atoi(argv[2]) : 3, steps = argc > 3 ? std::atoi(argv[3]) : 10;
  constexpr fl::i64 batch = 16, time = 128;
  fl::trainer_options o;
  o.threads = threads;
  o.batch = batch;
  o.time = time;
  o.optimizer.learning_rate = 3e-4;
  fl::trainer<small_gpt, fl::devices<fl::cpu>> t(o);

  std::vector<std::int32_t> tokens(batch * time), targets(batch * time);
  std::vector<double> seconds, cpu_seconds;
  double loss = 0;
  for (int step = 0; step < warm_up + steps; ++step) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = std::int32_t(fl::random_word({1, fl::u64(step), 0, 0}, i) % 256);
      targets[i] = std::int32_t(fl::random_word({1, fl::u64(step), 0, 1}, i) % 256);
    }
    const fl::nanoseconds begin = fl::machine_clock::read();
    const double cpu_begin = cpu_now();
    loss = t.step({{"tokens", std::span(tokens), {batch, time}}, {"targets", std::span(targets), {batch, time}}}).loss;
    if (step < warm_up) continue;
    seconds.push_back(double(fl::machine_clock::read() - begin) * 1e-9);
    cpu_seconds.push_back(cpu_now() - cpu_begin);
  }
  std::printf("{\"who\": \"fusionllm\", \"threads\": %d, \"loss\": %.6f, \"seconds\": %.4f, \"tokens_per_s\": %.1f, "
              "\"cpu_seconds\": %.4f, \"least_cpu_seconds\": %.4f}\n",
              threads, loss, median(seconds), double(batch * time) / median(seconds), median(cpu_seconds),
              *std::min_element(cpu_seconds.begin(), cpu_seconds.end()));
}
