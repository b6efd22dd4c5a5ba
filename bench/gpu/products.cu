// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <fusionllm/cuda/device.cuh>

#include "products.hpp"

namespace bench {

namespace fl = fusionllm;

/// Seconds of what f submits, by the GPU's clock, the best of `repetitions` after one that warms up.
template <class F>
double best_seconds(fl::cuda_context& gpu, int repetitions, F&& f) {
  auto& c = static_cast<fl::cuda::context&>(gpu);
  cudaEvent_t begin, end;
  fl::check(cudaEventCreate(&begin), "make an event");
  fl::check(cudaEventCreate(&end), "make an event");
  double best = 1e30;
  for (int i = 0; i <= repetitions; ++i) {
    fl::check(cudaEventRecord(begin, c.stream()), "record an event");
    f(c);
    fl::check(cudaEventRecord(end, c.stream()), "record an event");
    gpu.settle();
    float ms = 0;
    fl::check(cudaEventElapsedTime(&ms, begin, end), "read an event");
    if (i > 0) best = std::min(best, double(ms) / 1e3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

double seconds_of(fl::cuda_context& gpu, std::span<const fl::product> products, int repetitions) {
  fl::u64 most = 0;
  for (const auto& p : products)
    for (const auto& [rows, columns] : {std::pair{p.m, p.k}, {p.k, p.n}, {p.m, p.n}}) most = std::max(most, fl::u64(rows * columns) * 4);
  fl::device_array a(gpu, most), b(gpu, most), d(gpu, most);
  return best_seconds(gpu, repetitions, [&](fl::cuda::context& c) {
    for (const auto& p : products) fl::multiply(c, p, {a.data(), b.data(), d.data()});
  });
}
const char* library_of_products() { return fl::matmul_engine::library; }

double memory_rate(fl::cuda_context& gpu) {
  const fl::u64 bytes = fl::u64(1) << 30;
  fl::device_array a(gpu, bytes), b(gpu, bytes);
  return 2 * double(bytes) / best_seconds(gpu, 5, [&](fl::cuda::context& c) { c.copy(b.data(), a.data(), bytes); });
}

double seconds_of_top_k(fl::cuda_context& gpu, fl::i64 n, fl::i64 k, int repetitions) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 2654435761u % 20000019) - 10000009) * 1e-7f;
  fl::device_array input(gpu, fl::u64(n) * 4), positions(gpu, fl::u64(k) * 4), flag(gpu, 4), workspace(gpu, gpu.top_k_workspace(n, k));
  gpu.upload(input.data(), x.data(), fl::u64(n) * 4);
  return best_seconds(gpu, repetitions, [&](fl::cuda::context& c) {
    c.top_k(input.as<float>(), n, k, positions.as<fl::u32>(), nullptr, flag.as<fl::u32>(), workspace.data());
  });
}

}  // namespace bench
