// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/codec.hpp>

#include <vector>

#include <fusionllm/compress/registry.hpp>

#include "allocations.hpp"
#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("a steady step allocates nothing, forward and back") {
  std::vector<float> x(128 * 96), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float((i * 7919) % 1009) - 500.0f;
  fl::thread_team team(2);
  for (const char* label : {"no_compression", "half_precision", "int8", "uniform_top_k", "ada_top_k"})
    for (auto scope : {fl::selection_scope::row, fl::selection_scope::tensor})
      for (double ratio : {1.0, 10.0, 100.0}) {
        fl::codec_options options;
        options.ratio = ratio;
        options.scope = scope;
        options.team = &team;
        const auto out = fl::make_codec(label, options), back = fl::make_codec(label, options);
        std::vector<std::byte> frame;
        fl::mask made, seen, back_made, back_seen;
        const auto step = [&] {
          out->encode(x.data(), 128, 96, nullptr, nullptr, frame, &made);
          out->decode(frame, y.data(), 128, 96, nullptr, &seen);
          back->encode(x.data(), 128, 96, &seen, nullptr, frame, &back_made);
          back->decode(frame, y.data(), 128, 96, &made, &back_seen);
        };
        step();
        step();
        const auto before = allocations();
        for (int i = 0; i < 5; ++i) {
          x[std::size_t(i) * 1000] += 3.0f;
          step();
        }
        CHECK(allocations() == before);
      }
}

TEST_CASE("a hostile frame makes no decoder allocate more than the tensor it waits for needs") {
  std::vector<std::byte> frame(20, std::byte(0xFF));
  std::vector<float> y(64);
  for (const char* label : {"no_compression", "half_precision", "int8", "uniform_top_k", "ada_top_k"}) {
    const auto c = fl::make_codec(label);
    for (int positions = 0; positions < 3; ++positions)
      for (int values = 0; values < 4; ++values) {
        fl::payload_header h{c->wire_id(), fl::dtype::f32, false, false, 8, 8, {}};
        h.form = {fl::value_coding(values), fl::position_coding(positions), true, 0, 0xFFFFFFFF};
        h.write(frame.data());
        forget_largest_allocation();
        CHECK_THROWS_AS(c->decode(frame, y.data(), 8, 8, nullptr, nullptr), fl::error);
        CHECK(largest_allocation() < 4096);  // the error's text
      }
  }
}
