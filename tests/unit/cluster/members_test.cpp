// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/members.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

fl::joining of(const char* device, fl::dtype real) { return {device, 0, 1, fl::u32(real)}; }

}  // namespace

TEST_CASE("peers with devices that the broker has never heard of join if all compute in one type") {
  fl::members all(3);
  CHECK(error_of([&] { fl::join(all, 0, of("cuda_bf16", fl::dtype::bf16)); }).code == fl::errc::ok);
  CHECK(error_of([&] { fl::join(all, 1, of("abacus", fl::dtype::bf16)); }).code == fl::errc::ok);
  CHECK(error_of([&] { fl::join(all, 2, of("cpu", fl::dtype::f32)); }).says(fl::errc::config, "bf16", "f32", "one precision"));
  CHECK_FALSE(all.all(&fl::member::has_joined));
}

TEST_CASE("a type that activations cannot have is a protocol error") {
  fl::members all(1);
  for (fl::u32 wrong : {fl::u32(fl::dtype::int32), fl::u32(fl::dtype::int8), 6u, 256u, ~0u})
    CHECK(error_of([&] { fl::join(all, 0, {"cpu", 0, 1, wrong}); }).says(fl::errc::protocol, std::to_string(wrong)));
}
