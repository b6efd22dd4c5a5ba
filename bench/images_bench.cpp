// SPDX-License-Identifier: Apache-2.0
// Pictures per second that one thread makes ready: 28 x 28 filled up to 3 x 32 x 32 (Fashion-MNIST for a residual network),
// 3 x 32 x 32 (CIFAR), and JPEG and PNG files of 375 x 500 decoded and scaled to 3 x 224 x 224; and what a step still waits
// for when the next batches are made in the background.
#include <benchmark/benchmark.h>
#include <fusionllm/trainer/images.hpp>

#include "../tests/unit/temporary_folder.hpp"
#include "../tests/unit/trainer/image_files.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

fl::run_config config_of(const std::string& path, fl::i64 batch) {
  fl::run_config c;
  c.data = path;
  c.batch = batch;
  return c;
}

/// A folder with one kind of pictures, made when it is first asked for.
const std::string& folder_of(const std::string& kind) {
  static const temporary_folder root;
  static std::map<std::string, std::string> made;
  std::string& path = made[kind];
  if (!path.empty()) return path;
  path = root / kind;
  std::filesystem::create_directories(path + "/class");
  if (kind == "idx") {
    root.write("idx/train-images-idx3-ubyte", idx({10000, 28, 28}, noise(10000 * 784, 1)));
    root.write("idx/train-labels-idx1-ubyte", idx({10000}, std::string(10000, '\1')));
  } else if (kind == "cifar") {
    std::string records;
    for (fl::u64 i = 0; i < 2000; ++i) records += '\1' + noise(3072, i);
    for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
      root.write(std::string("cifar/") + name + ".bin", records);
  } else {
    std::string pixels;
    for (int i = 0; i < 375 * 500 * 3; ++i)
      pixels += static_cast<char>(128 + 60 * std::sin(i / 700.0) + 40 * std::cos(i / 91.0) + noise(1, fl::u64(i))[0] / 32);
    for (int i = 0; i < 20; ++i)
      root.write(kind + "/class/" + std::to_string(i) + "." + kind,
                 kind == "jpg" ? jpeg(375, 500, 3, pixels) : png(375, 500, PNG_FORMAT_RGB, pixels));
  }
  return path;
}

struct batch_memory {
  batch_memory(fl::i64 rows, fl::i64 side) : images(std::size_t(rows * 3 * side * side)), labels(std::size_t(rows)),
        spans{{"images", std::span(images), {rows, 3, side, side}}, {"labels", std::span(labels), {rows}}} {}
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  fl::output_span spans[2];
};

void make_ready(benchmark::State& state, const std::string& kind, fl::i64 rows, fl::i64 side) {
  const fl::image_data data(fl::open_images(folder_of(kind)), {.rows = rows});
  batch_memory to(rows, side);
  fl::u64 step = 0;
  for (auto _ : state) data.fill(step++, 0, rows, to.spans);
  state.SetItemsProcessed(state.iterations() * rows);
}

// The step is a busy wait of so many milliseconds; what is timed is only how long the batch is waited for.
void wait_for_data(benchmark::State& state, const std::string& kind, fl::i64 rows, fl::i64 side, int step_ms) {
  const auto data = fl::images_from(config_of(folder_of(kind), rows));
  batch_memory to(rows, side);
  fl::u64 step = 0;
  data->fill(step++, 0, rows, to.spans);
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(step_ms)) {
    }
    const auto asked = std::chrono::steady_clock::now();
    data->fill(step++, 0, rows, to.spans);
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count());
  }
}

BENCHMARK_CAPTURE(make_ready, idx_28_to_32, "idx", 128, 32);
BENCHMARK_CAPTURE(make_ready, cifar_32, "cifar", 128, 32);
BENCHMARK_CAPTURE(make_ready, jpeg_375x500_to_224, "jpg", 8, 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_ready, png_375x500_to_224, "png", 8, 224)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(wait_for_data, idx_step_of_20_ms, "idx", 128, 32, 20)->UseManualTime()->Iterations(50)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(wait_for_data, jpeg_step_of_200_ms, "jpg", 8, 224, 200)
    ->UseManualTime()
    ->Iterations(15)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
