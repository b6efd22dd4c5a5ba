// SPDX-License-Identifier: Apache-2.0
// Steps of GPT-2 small and ResNet-101 and selections on cuda:0, beside the rate of the products' library on the same shapes
// and that of memory. Prints a line each and, last, one of JSON. An argument: the seconds that it may take.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fusionllm/cluster/binding.hpp>
#include <fusionllm/schedule/equal.hpp>
#include <fusionllm/trainer/basic_trainer.hpp>

#include "models.hpp"
#include "products.hpp"

namespace fl = fusionllm;

namespace {

using clock_type = std::chrono::steady_clock;
const auto began = clock_type::now();
double limit = 400;
double passed() { return std::chrono::duration<double>(clock_type::now() - began).count(); }

std::string json;
void add(const std::string& entry) {
  json += (json.empty() ? "" : ", ") + entry;
  std::printf("%s\n", entry.c_str());
  std::fflush(stdout);
}
template <class... A>
std::string text(const char* format, A... a) {
  char line[512];
  std::snprintf(line, sizeof line, format, a...);
  return line;
}

/// All products of a training step: forward, cotangent and gradient of every linear operator.
template <class Model>
std::vector<fl::product> products_of(fl::sizes s, fl::dtype real) {
  static constexpr auto g = fl::graph_of<Model>();
  std::vector<fl::product> all;
  for (int i = 0; i < g.size(); ++i) {
    if (g.nodes[std::size_t(i)].op->name != "linear") continue;
    const auto v = g.view(i, s);
    const fl::i64 rows = v.out.rows(), out = v.out.last(), in = v.in[0].last();
    fl::product p{.m = out, .n = rows, .k = in, .transpose_a = true};
    p.in = p.out = real;
    all.push_back(p);
    p = {.m = in, .n = rows, .k = out};
    p.in = p.out = real;
    all.push_back(p);
    p = {.m = in, .n = out, .k = rows, .transpose_b = true, .add = true};
    p.in = real;
    all.push_back(p);
  }
  return all;
}
double flops_of(const std::vector<fl::product>& all) {
  double sum = 0;
  for (const auto& p : all) sum += 2.0 * double(p.m) * double(p.n) * double(p.k);
  return sum;
}
template <class Model>
double flops_of_step(fl::sizes s) {
  static constexpr auto g = fl::graph_of<Model>();
  double sum = 0;
  for (int i = 0; i < g.size(); ++i) {
    const auto c = fl::cost_of(g, i, s);
    sum += double(c.flops_forward) + double(c.flops_backward);
  }
  return sum;
}

/// Median seconds of a step.
double seconds_of_steps(fl::basic_trainer& t, const fl::batch_view& batch, int steps, double& loss) {
  std::vector<double> all;
  for (int i = 0; i < steps + 3; ++i) {
    const auto begin = clock_type::now();
    loss = t.step(batch).loss;
    if (i >= 3) all.push_back(std::chrono::duration<double>(clock_type::now() - begin).count());
    if (passed() > limit && all.size() > 2) break;
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <class Model, class... Device>
const fl::model_binding& binding() {
  return fl::bind_model<Model, fl::devices<Device...>, fl::equal_number, fl::compressors<fl::no_compression>>();
}

void gpt2(fl::cuda_context& gpu, const char* device, fl::dtype real, bool tf32) {
  using model = bench::gpt2_small;
  constexpr fl::i64 rows = 8, time = 1024;
  std::vector<std::int32_t> tokens(rows * time), targets(rows * time);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7919 % 50257), targets[i] = std::int32_t((i + 1) * 7919 % 50257);
  fl::trainer_options o;
  o.device = device;
  o.batch = rows;
  o.time = time;
  double loss = 0, seconds = 0;
  {
    fl::basic_trainer t(binding<model, fl::cuda, fl::cuda_tf32, fl::cuda_bf16>(), o);
    seconds = seconds_of_steps(t, {{"tokens", std::span<const std::int32_t>(tokens), {rows, time}}, {"targets", std::span<const std::int32_t>(targets), {rows, time}}}, 10, loss);
  }
  (void)tf32;
  const auto all = products_of<model>({rows, time}, real);
  const double alone = bench::seconds_of(gpu, all, 3);
  add(text(R"({"bench": "gpt2_small", "device": "%s", "batch": %d, "time": %d, "step_ms": %.2f, "tokens_per_s": %.0f, "tflops": %.1f, )"
           R"("products_alone_ms": %.2f, "products_tflops": %.1f, "share_of_products_rate": %.3f, "products_by": "%s", "loss": %.3f})",
           device, int(rows), int(time), seconds * 1e3, double(rows * time) / seconds, flops_of_step<model>({rows, time}) / seconds / 1e12, alone * 1e3,
           flops_of(all) / alone / 1e12, flops_of_step<model>({rows, time}) / seconds / (flops_of(all) / alone), bench::library_of_products(), loss));
}

void resnet(const char* device) {
  using model = bench::resnet101;
  constexpr fl::i64 rows = 32;
  std::vector<float> images(rows * 3 * 224 * 224);
  std::vector<std::int32_t> labels(rows);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = float(int(i * 2654435761u % 2001) - 1000) * 1e-3f;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(i * 37 % 1000);
  fl::trainer_options o;
  o.device = device;
  o.batch = rows;
  o.time = 1;
  fl::basic_trainer t(binding<model, fl::cuda, fl::cuda_tf32>(), o);
  double loss = 0;
  const double seconds =
      seconds_of_steps(t, {{"images", std::span<const float>(images), {rows, 3, 224, 224}}, {"labels", std::span<const std::int32_t>(labels), {rows}}}, 5, loss);
  add(text(R"({"bench": "resnet101", "device": "%s", "batch": %d, "step_ms": %.2f, "images_per_s": %.0f, "tflops": %.1f, "loss": %.3f})", device, int(rows),
           seconds * 1e3, double(rows) / seconds, flops_of_step<model>({rows, 1}) / seconds / 1e12, loss));
}

/// Runs f, or says why not.
template <class F>
void attempt(const char* what, F&& f) {
  if (passed() > limit) return add(text(R"({"bench": "%s", "skipped": "no time was left"})", what));
  try {
    f();
  } catch (const std::exception& e) {
    std::string why = e.what();
    std::replace(why.begin(), why.end(), '"', '\'');
    add(text(R"({"bench": "%s", "failed": "%s"})", what, why.c_str()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) limit = std::atof(argv[1]);
  const auto& side = fl::device_tables<bench::gpt2_small, fl::cuda>();
  if (side.count() == 0) {
    std::printf("SKIPPED: no GPU\n");
    return 77;
  }
  {
    const auto gpu = side.open(0, fl::product_precision::f32), tf32 = side.open(0, fl::product_precision::tf32);
    std::printf("on %s\n", std::string(gpu->description()).c_str());
    attempt("gpt2_small bf16", [&] { gpt2(*gpu, "cuda_bf16", fl::dtype::bf16, false); });
    attempt("gpt2_small tf32", [&] { gpt2(*tf32, "cuda_tf32", fl::dtype::f32, true); });
    attempt("gpt2_small fp32", [&] { gpt2(*gpu, "cuda", fl::dtype::f32, false); });
    attempt("resnet101 tf32", [] { resnet("cuda_tf32"); });
    attempt("top_k", [&] {
      const double memory = bench::memory_rate(*gpu);
      for (fl::i64 n : {fl::i64(10'000'000), fl::i64(100'000'000)})
        for (fl::i64 k : {n / 1000, n / 100, n / 10}) {
          const double seconds = bench::seconds_of_top_k(*gpu, n, k, 5);
          add(text(R"({"bench": "top_k", "n": %lld, "k": %lld, "ms": %.3f, "gb_per_s": %.0f, "share_of_memory_rate": %.3f})", (long long)n, (long long)k,
                   seconds * 1e3, 4.0 * double(n) / seconds / 1e9, 4.0 * double(n) / seconds / memory));
        }
    });
  }
  std::printf("JSON [%s]\n", json.c_str());
  return 0;
}
