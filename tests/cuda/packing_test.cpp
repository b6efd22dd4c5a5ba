// SPDX-License-Identifier: Apache-2.0
// Frames packed by the bodies that the GPU runs, on teams of one and of threads, are the CPU codecs' frames, byte for byte,
// and become the same tensors and masks.
#include <fusionllm/cuda/packing.hpp>

#include <fusionllm/compress/device_codec.hpp>
#include <fusionllm/compress/registry.hpp>

#include "catch.hpp"
#include "deferred_device.hpp"
#include "node_run.hpp"

namespace fl = fusionllm;
using fl::i64;
using fl::u32;
using seam::numbers;

namespace {

fl::codec_options options_for(double ratio, fl::selection_scope scope, fl::value_coding values) {
  fl::codec_options o;
  o.ratio = ratio;
  o.scope = scope;
  o.values = values;
  return o;
}

/// Some rows with ties, zeros of both signs, values near denormal and large ones.
numbers matrix(i64 rows, i64 columns, u32 seed) {
  numbers x = seam::drawn(std::size_t(rows * columns), seed);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 5 == 0) x[i] = float(int(x[i] * 2));
    if (i % 11 == 3) x[i] = -0.0f;
    if (i / std::size_t(columns) % 3 == 1) x[i] *= 1e-38f;
    if (i / std::size_t(columns) % 3 == 2) x[i] *= 1e30f;
  }
  return x;
}

struct link_end {
  deferred::device::context gpu;
  std::unique_ptr<fl::codec> forward_codec, backward_codec;
  fl::device_codec forward, backward;
  fl::device_mask mask;

  link_end(std::string_view label, const fl::codec_options& o)
      : forward_codec(fl::make_codec(label, o)), backward_codec(fl::make_codec(label, o)), forward(*forward_codec, gpu.packing_of),
        backward(*backward_codec, gpu.packing_of) {}
  void* put(const numbers& x) {
    void* p = gpu.own.allocate(x.size() * sizeof(float) + 4);
    gpu.own.upload(p, x.data(), x.size() * sizeof(float));
    return p;
  }
};

/// A tensor forward and its cotangent backward, over both kinds of ends.
void compare(std::string_view label, const fl::codec_options& o, i64 rows, i64 columns) {
  INFO(label << ", ratio " << o.ratio << ", " << rows << " x " << columns);
  const numbers x = matrix(rows, columns, 1), d = matrix(rows, columns, 2);
  const auto plain_forward = fl::make_codec(label, o), plain_backward = fl::make_codec(label, o);
  fl::mask plain_mask;
  std::vector<std::byte> expected, frame;
  plain_forward->encode(x.data(), rows, columns, nullptr, nullptr, expected, &plain_mask);

  link_end sender(label, o), receiver(label, o);
  sender.forward.encode({sender.put(x), fl::dtype::f32, rows, columns}, nullptr, &sender.mask);
  sender.gpu.own.settle();
  sender.forward.finish(frame, &sender.mask);
  CHECK(frame == expected);
  CHECK(sender.mask.count == plain_mask.count());

  numbers arrived(x.size()), on_gpu(x.size());
  plain_forward->decode(expected, arrived.data(), rows, columns, nullptr, nullptr);
  void* there = receiver.put(numbers(x.size(), 5.f));
  receiver.forward.decode(frame, {there, fl::dtype::f32, rows, columns}, nullptr, &receiver.mask);
  frame.assign(frame.size(), std::byte(77));
  receiver.gpu.own.read(on_gpu.data(), there, on_gpu.size() * sizeof(float));
  CHECK(on_gpu == arrived);

  plain_backward->encode(d.data(), rows, columns, &plain_mask, nullptr, expected, nullptr);
  receiver.backward.encode({receiver.put(d), fl::dtype::f32, rows, columns}, &receiver.mask, nullptr);
  receiver.gpu.own.settle();
  receiver.backward.finish(frame, nullptr);
  CHECK(frame == expected);
  plain_backward->decode(expected, arrived.data(), rows, columns, &plain_mask, nullptr);
  sender.backward.decode(frame, {there = sender.put(numbers(x.size(), 5.f)), fl::dtype::f32, rows, columns}, &sender.mask, nullptr);
  sender.gpu.own.read(on_gpu.data(), there, on_gpu.size() * sizeof(float));
  CHECK(on_gpu == arrived);
}

}  // namespace

TEST_CASE("frames packed on a device are the CPU's, forward and within the mask") {
  for (const auto scope : {fl::selection_scope::row, fl::selection_scope::tensor})
    for (const auto values : {fl::value_coding::int8, fl::value_coding::f16, fl::value_coding::f32})
      for (const double ratio : {0.0, 1.5, 2.1, 4.0, 10.0, 100.0, 1e5})
        for (const auto& [rows, columns] : {std::pair<i64, i64>{1, 1}, {3, 7}, {16, 96}, {5, 1000}})
          compare("ada_top_k", options_for(ratio, scope, values), rows, columns);
}

TEST_CASE("dense frames packed on a device are the CPU's") {
  for (std::string_view label : {"no_compression", "half_precision", "int8", "uniform_top_k"})
    for (const auto& [rows, columns] : {std::pair<i64, i64>{1, 1}, {3, 7}, {16, 96}, {1, 4099}}) compare(label, {}, rows, columns);
}

TEST_CASE("a steady device codec allocates nothing") {
  link_end end("ada_top_k", options_for(8, fl::selection_scope::tensor, fl::value_coding::int8));
  const numbers x = matrix(8, 64, 1);
  void* at = end.put(x);
  std::vector<std::byte> frame;
  const auto step = [&] {
    end.forward.encode({at, fl::dtype::f32, 8, 64}, nullptr, &end.mask);
    end.gpu.own.settle();
    end.forward.finish(frame, &end.mask);
    end.backward.encode({at, fl::dtype::f32, 8, 64}, &end.mask, nullptr);
    end.gpu.own.settle();
    end.backward.finish(frame, nullptr);
  };
  step();
  const auto before = end.gpu.own.allocations();
  for (int i = 0; i < 3; ++i) step();
  CHECK(end.gpu.own.allocations() == before);
}
