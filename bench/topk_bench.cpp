// SPDX-License-Identifier: Apache-2.0
// Top-k of 1e7 floats at k = n/100 against std::nth_element on the same magnitudes, interleaved, and the encoding of
// (2048, 256) activations row by row. Usage: topk_bench [pairs] [threads] [elements]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <fusionllm/compress/registry.hpp>
#include <fusionllm/compress/selection.hpp>

namespace fl = fusionllm;

namespace {

template <class F>
double milliseconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// About normal: the sum of four uniform numbers.
std::vector<float> sample(std::size_t n) {
  std::vector<float> x(n);
  fl::u64 state = 42;
  for (float& v : x) {
    v = -2.0f;
    for (int i = 0; i < 4; ++i)
      v += float((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) * 0x1p-24f;
  }
  return x;
}

void against_nth_element(int pairs, int threads, std::size_t n) {
  const std::vector<float> x = sample(n);
  const std::size_t k = n / 100;
  fl::thread_team team(threads);
  fl::top_k_selector selector;
  std::vector<fl::u32> positions;
  std::vector<float> keys(n);
  std::vector<double> ours, theirs, ratio;
  selector.select(x.data(), fl::i64(n), fl::i64(k), &team, positions);  // reach the sizes
  std::printf("top-k of %zu floats, k = %zu, %d threads\n%6s %14s %12s %8s\n", n, k, threads, "pair", "nth_element ms",
              "fusionllm ms", "ratio");
  for (int pair = 0; pair < pairs; ++pair) {
    std::transform(x.begin(), x.end(), keys.begin(), [](float v) { return std::fabs(v); });  // not timed
    theirs.push_back(milliseconds(
        [&] { std::nth_element(keys.begin(), keys.begin() + std::ptrdiff_t(k), keys.end(), std::greater<>()); }));
    ours.push_back(milliseconds([&] { selector.select(x.data(), fl::i64(n), fl::i64(k), &team, positions); }));
    ratio.push_back(theirs.back() / ours.back());
    std::printf("%6d %14.2f %12.2f %8.1f\n", pair, theirs.back(), ours.back(), ratio.back());
  }
  std::printf("%6s %14.2f %12.2f %8.1f\n", "median", median(theirs), median(ours), median(ratio));
  for (fl::u32 p : positions)
    if (std::fabs(x[p]) < keys[k]) std::abort();  // not the top k
}

void encode_rows(int rounds) {
  constexpr fl::i64 rows = 2048, columns = 256;
  const std::vector<float> x = sample(std::size_t(rows * columns));
  std::vector<float> y(x.size());
  std::printf("\nencode and decode of (%d, %d) floats, 1 thread\n%-16s %6s %10s %10s %12s\n", int(rows), int(columns),
              "compressor", "ratio", "encode ms", "decode ms", "bytes");
  for (const char* name : {"no_compression", "half_precision", "int8", "uniform_top_k", "ada_top_k"})
    for (double ratio : {5.0, 10.0, 100.0}) {
      const bool fixed = std::string_view(name).find("top_k") == std::string_view::npos;
      if (fixed && ratio != 5) continue;
      fl::codec_options options;
      options.ratio = ratio;
      const auto codec = fl::make_codec(name, options);
      std::vector<std::byte> frame;
      fl::mask made, seen;
      std::vector<double> encode, decode;
      for (int round = 0; round < rounds; ++round) {
        encode.push_back(milliseconds([&] { codec->encode(x.data(), rows, columns, nullptr, nullptr, frame, &made); }));
        decode.push_back(milliseconds([&] { codec->decode(frame, y.data(), rows, columns, nullptr, &seen); }));
      }
      std::printf("%-16s %6.1f %10.3f %10.3f %12zu\n", name, double(x.size() * 4) / double(frame.size()),
                  median(encode), median(decode), frame.size());
    }
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 7;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::size_t n = argc > 3 ? std::size_t(std::atoll(argv[3])) : 10'000'000;
  against_nth_element(pairs < 1 ? 1 : pairs, threads, n < 1000 ? 1000 : n);
  encode_rows(21);
}
