// SPDX-License-Identifier: Apache-2.0
// On a GPU: every operator that has a kernel against plain loops, and top-k against the CPU's selection. Without one
// these tests say so.
#include <fusionllm/device/cuda.hpp>

#include <cmath>
#include <cstdio>

#include <fusionllm/compress/selection.hpp>
#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "model.hpp"
#include "node_run.hpp"

namespace fl = fusionllm;
using fl::u32;
using seam::numbers;

namespace {

const fl::device_side& side() { return fl::device_tables<seam::model, fl::cuda>(); }

constexpr fl::nanoseconds limit = 60 * fl::second;

struct gpu_memory {
  fl::cuda_context& gpu;
  std::vector<void*> kept{};

  explicit gpu_memory(fl::cuda_context& g) : gpu(g) {}
  ~gpu_memory() {
    for (void* p : kept) gpu.release(p);
  }
  gpu_memory(const gpu_memory&) = delete;
  gpu_memory& operator=(const gpu_memory&) = delete;

  void* room(fl::u64 bytes) { return kept.emplace_back(gpu.allocate(bytes)); }
  void* put(const numbers& x) {
    void* p = room(x.size() * sizeof(float));
    gpu.upload(p, x.data(), x.size() * sizeof(float));
    gpu.wait(gpu.mark(), limit);
    return p;
  }
  template <class T = float>
  std::vector<T> get(const void* p, std::size_t n) {
    std::vector<T> x(n);
    gpu.download(x.data(), p, n * sizeof(T));
    gpu.wait(gpu.mark(), limit);
    return x;
  }
};

std::unique_ptr<fl::cuda_context> open_gpu() {
  if (side().count() == 0) fusionllm_test::skip_program("no GPU");
  auto gpu = side().open(0);
  std::printf("on %s\n", std::string(gpu->description()).c_str());
  return gpu;
}

/// The norm of the difference as a share of the norm.
void check_close(const numbers& found, const numbers& expected, double bound) {
  REQUIRE(found.size() == expected.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = double(found[i]) - double(expected[i]);
    difference += d * d;
    norm += double(expected[i]) * double(expected[i]);
  }
  CHECK(std::sqrt(difference) <= bound * std::sqrt(norm));
}

}  // namespace

TEST_CASE("operators on the GPU equal the reference", "[gpu]") {
  constexpr auto g = fl::graph_of<seam::model>();
  const auto gpu = open_gpu();
  const auto reference = fl::device_table<seam::model, fl::reference<float>>();
  fl::reference<float>::context plain;
  for (int node = 0; node < g.size(); ++node)
    for (fl::i64 batch : {1, 37, 3000})
      for (fl::pass mode : {fl::pass::training, fl::pass::inference}) {
        if (!side().tables[std::size_t(node)]) continue;
        INFO("node " << node << " (" << g.nodes[std::size_t(node)].op->name << "), batch " << batch);
        const seam::node_case c{g, node, {batch, 1}, mode, true};
        seam::host_memory host;
        gpu_memory memory(*gpu);
        const auto expected = seam::run_node(c, *reference[std::size_t(node)], plain, host);
        const auto found = seam::run_node(c, *side().tables[std::size_t(node)], *gpu, memory);
        check_close(found.out, expected.out, 1e-5);
        for (std::size_t i = 0; i < expected.d_in.size(); ++i) check_close(found.d_in[i], expected.d_in[i], 1e-5);
        for (std::size_t i = 0; i < expected.d_param.size(); ++i)
          check_close(found.d_param[i], expected.d_param[i], 1e-5);
      }
}

TEST_CASE("top-k on the GPU keeps what the CPU keeps", "[gpu]") {
  const auto gpu = open_gpu();
  for (std::size_t n : {1u, 1000u, 8193u, 3'000'001u})
    for (bool ties : {false, true}) {
      numbers x = seam::drawn(n, u32(n));
      if (ties)
        for (float& v : x) v = std::round(4 * v);
      for (std::size_t k : {std::size_t(1), n / 100, n}) {
        if (k == 0) continue;
        INFO("k " << k << " of " << n);
        gpu_memory memory(*gpu);
        auto* positions = static_cast<u32*>(memory.room(k * sizeof(u32)));
        auto* values = static_cast<float*>(memory.room(k * sizeof(float)));
        auto* non_finite = static_cast<u32*>(memory.room(sizeof(u32)));
        const auto* input = static_cast<const float*>(memory.put(x));
        void* workspace = memory.room(gpu->top_k_workspace(fl::i64(n), fl::i64(k)));
        gpu->top_k(input, fl::i64(n), fl::i64(k), positions, values, non_finite, workspace);
        std::vector<u32> expected;
        fl::top_k_selector().select(x.data(), fl::i64(n), fl::i64(k), nullptr, expected);
        numbers expected_values;
        for (u32 p : expected) expected_values.push_back(x[p]);
        CHECK(memory.get<u32>(positions, k) == expected);
        CHECK(memory.get(values, k) == expected_values);
        CHECK(memory.get<u32>(non_finite, 1)[0] == 0);
      }
    }
}
