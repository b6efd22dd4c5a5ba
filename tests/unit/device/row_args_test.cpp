// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/row_args.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("rows are those of the output in forward, of its cotangent in backward; what is absent is null") {
  float x[24], weight[4], y[24], saved[6], d[24];
  const fl::extents e{3, {2, 3, 4}};
  fl::kernel_args a;
  a.in[0] = {x, e};
  a.param[0] = {weight, {1, {4}}};
  a.out = {y, e};
  const fl::row_args<float> forward(a);
  CHECK(forward.rows == 6);
  CHECK(forward.n == 4);
  CHECK(forward.x == x);
  CHECK(forward.weight == weight);
  CHECK(forward.bias == nullptr);
  CHECK(forward.y == y);
  CHECK(forward.saved == nullptr);
  CHECK(forward.dx == nullptr);
  a.out = {};
  a.saved = saved;
  a.d_out = {d, e};
  a.d_in[0] = {x, e};
  const fl::row_args<float> backward(a);
  CHECK(backward.rows == 6);
  CHECK(backward.n == 4);
  CHECK(backward.y == nullptr);
  CHECK(backward.saved == saved);
  CHECK(backward.dy == d);
  CHECK(backward.partial == nullptr);
  CHECK(backward.dx == x);
}
