// SPDX-License-Identifier: Apache-2.0
// Attention on tiles: every width of heads, every edge of a tile, forward and backward.
#include <fusionllm/cuda/operators.hpp>

#include "operator_check.hpp"
#include "text_model.hpp"

namespace fl = fusionllm;
using fl::i64;

namespace {

/// Heads of 5 side by side, and of 64, whose rows are read by quads, in groups.
struct narrow_heads {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, fl::time, 15>(g, "x");
    auto a = fl::grouped_attention<3>(x, x, x);
    auto k = fl::input<fl::real, fl::batch, fl::time, 64>(g, "k"), v = fl::input<fl::real, fl::batch, fl::time, 64>(g, "v");
    auto b = fl::grouped_attention<2, 1>(fl::input<fl::real, fl::batch, fl::time, 128>(g, "q"), k, v);
    return fl::mean_squared_error(fl::concatenate(a, b), fl::input<fl::real, fl::batch, fl::time, 143>(g, "target"));
  }
};

template <class Device>
void check(i64 batch, i64 time) {
  seam::check_operators<narrow_heads, Device>({batch, time}, "attention");
  seam::check_operators<seam::wide_heads, Device>({batch, time}, "attention");
}

}  // namespace

TEST_CASE("attention by teams of one") {
  for (i64 time : {1, 8, 16, 17, 31, 32, 33, 64, 65, 97}) check<seam::alone>(1, time);
  check<seam::alone>(3, 20);
}

TEST_CASE("attention by teams of threads") {
  check<seam::together<64>>(1, 35);
}

TEST_CASE("attention with activations of 16 bits") {
  for (i64 time : {1, 16, 33, 70}) check<seam::alone_bf16>(1, time);
}
