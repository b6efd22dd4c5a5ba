// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/memory_check.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include <fusionllm/cluster/policies.hpp>
#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/schedule/equal.hpp>

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

/// 1,048,576 weights, which with gradient and optimizer state are 16 MiB.
struct square {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 1024>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1024>(g, "y");
    return fl::mean_squared_error(fl::output("out", x | fl::linear<1024>.without_bias()), y);
  }
};
const fl::model_binding& binding() {
  return fl::bind_model<square, fl::reference<float>, fl::equal_number, fl::no_compression>();
}
fl::run_config allowed(fl::i64 mib) {
  fl::run_config c;
  c.batch = 4;
  c.memory_mib = mib;
  return c;
}

}  // namespace

TEST_CASE("a run in one process is refused where it needs more memory than it may use, with both numbers") {
  CHECK(error_of([] { fl::check_memory(binding(), allowed(0)); }).code == fl::errc::ok);
  CHECK(error_of([] { fl::check_memory(binding(), allowed(20)); }).code == fl::errc::ok);
  CHECK(error_of([] { fl::check_memory(binding(), allowed(12)); }).says(fl::errc::plan, "this process", "0.02 GiB", "0.01 GiB", "memory_mib"));
  fl::run_config large = allowed(20);
  large.batch = 1024;
  large.micro_batches = 1;
  CHECK(error_of([&] { fl::check_memory(binding(), large); }).code == fl::errc::plan);
  large.micro_batches = 256;
  CHECK(error_of([&] { fl::check_memory(binding(), large); }).code == fl::errc::ok);
}
