// SPDX-License-Identifier: Apache-2.0
// On a GPU: exact selection, and frames that are the CPU codecs' frames byte for byte, both ways.
#include <fusionllm/compress/device_codec.hpp>

#include <cmath>

#include <fusionllm/compress/registry.hpp>
#include <fusionllm/compress/selection.hpp>

#include "gpu_memory.hpp"
#include "model.hpp"
#include "node_run.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using seam::numbers;

namespace {

fl::cuda_context& gpu() { return seam::gpu_of(fl::device_tables<seam::model, fl::cuda>()); }

}  // namespace

TEST_CASE("GPU: top-k keeps what the CPU keeps", "[gpu]") {
  for (std::size_t n : {1u, 1000u, 8193u, 3'000'001u})
    for (bool ties : {false, true}) {
      numbers x = seam::drawn(n, u32(n));
      if (ties)
        for (float& v : x) v = std::round(4 * v);
      for (std::size_t k : {std::size_t(1), n / 100, n}) {
        if (k == 0) continue;
        INFO("k " << k << " of " << n);
        seam::gpu_memory<> memory(gpu());
        auto* positions = static_cast<u32*>(memory.room(k * sizeof(u32)));
        auto* values = static_cast<float*>(memory.room(k * sizeof(float)));
        auto* non_finite = static_cast<u32*>(memory.room(sizeof(u32)));
        const auto* input = static_cast<const float*>(memory.put(x));
        void* workspace = memory.room(gpu().top_k_workspace(i64(n), i64(k)));
        gpu().top_k(input, i64(n), i64(k), positions, values, non_finite, workspace);
        std::vector<u32> expected;
        fl::top_k_selector().select(x.data(), i64(n), i64(k), nullptr, expected);
        numbers expected_values;
        for (u32 p : expected) expected_values.push_back(x[p]);
        CHECK(memory.read<u32>(positions, k) == expected);
        CHECK(memory.read<float>(values, k) == expected_values);
        CHECK(memory.read<u32>(non_finite, 1)[0] == 0);
      }
    }
}

TEST_CASE("GPU: frames are the CPU's, forward and within the mask", "[gpu][small]") {
  for (const auto scope : {fl::selection_scope::row, fl::selection_scope::tensor})
    for (const auto values : {fl::value_coding::int8, fl::value_coding::f16, fl::value_coding::f32})
      for (const double ratio : {1.0, 2.1, 4.0, 10.0, 100.0})
        for (const auto& [rows, columns] : {std::pair<i64, i64>{1, 1}, {3, 7}, {16, 96}, {64, 3000}}) {
          INFO("ratio " << ratio << ", " << rows << " x " << columns << ", values " << int(values));
          fl::codec_options o;
          o.ratio = ratio;
          o.scope = scope;
          o.values = values;
          const auto plain = fl::make_codec("ada_top_k", o), there = fl::make_codec("ada_top_k", o), back = fl::make_codec("ada_top_k", o);
          const numbers x = seam::drawn(std::size_t(rows * columns), 1), d = seam::drawn(std::size_t(rows * columns), 2);
          fl::mask plain_mask;
          fl::device_mask mask, seen;
          std::vector<std::byte> expected, frame;
          plain->encode(x.data(), rows, columns, nullptr, nullptr, expected, &plain_mask);
          seam::gpu_memory<> memory(gpu());
          fl::device_codec forward(*there, *gpu().packing()), backward(*back, *gpu().packing());
          forward.encode({memory.put(x), fl::dtype::f32, rows, columns}, nullptr, &mask);
          gpu().settle();
          forward.finish(frame, &mask);
          CHECK(frame == expected);

          numbers arrived(x.size());
          plain->decode(expected, arrived.data(), rows, columns, nullptr, nullptr);
          void* out = memory.room(x.size() * sizeof(float));
          forward.decode(frame, {out, fl::dtype::f32, rows, columns}, nullptr, &seen);
          CHECK(memory.read<float>(out, x.size()) == arrived);

          plain->encode(d.data(), rows, columns, &plain_mask, nullptr, expected, nullptr);
          backward.encode({memory.put(d), fl::dtype::f32, rows, columns}, &seen, nullptr);
          gpu().settle();
          backward.finish(frame, nullptr);
          CHECK(frame == expected);
        }
}
