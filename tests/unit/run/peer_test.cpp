// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/peer.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 1>(g, "x");
    auto y = fl::input<fl::real, fl::batch, 1>(g, "y");
    return fl::mean_squared_error(x | fl::linear<1>, y);
  }
};
struct ones final : fl::data_source {
  fl::i64 batch() const override { return 2; }
  void fill(fl::u64, fl::i64, fl::i64 end, std::span<const fl::output_span> inputs) const override {
    for (const auto& i : inputs) std::fill_n(static_cast<double*>(i.data), end, 1.0);
  }
  fl::u64 digest() const override { return 77; }
  std::string describe() const override { return "ones"; }
};
// As programs do whose data is files.
std::unique_ptr<fl::data_source> named(const fl::run_config& c) {
  if (c.data != "ones") fl::fail(fl::errc::data, "data is '", c.data, "'");
  return std::make_unique<ones>();
}
// Of a stage that reads these inputs; gives what the peers compare.
fl::u64 fill_first_step(const fl::program_options& program, const std::string& data, std::span<const int> nodes) {
  fl::run_config c;
  c.batch = 2, c.time = 1, c.data = data;
  const fl::command_call call{fl::trainer<model, fl::reference<double>>::binding(), c, {}, program};
  fl::detail::peer_process p(call);
  fl::step_data step;
  step.inputs.resize(16);
  p.load(0, nodes, step);
  for (int i : nodes) CHECK(static_cast<const double*>(step.inputs[std::size_t(i)])[1] == 1);
  return p.data_digest();
}

}  // namespace

TEST_CASE("a peer opens data that is named or that it reads, a program's own too") {
  const int first[] = {fl::find_input(fl::trainer<model, fl::reference<double>>::binding().graph, "x")};
  const fl::program_options files{{}, named};
  CHECK(fill_first_step(files, "", {}) == 0);
  CHECK(fill_first_step(files, "ones", {}) == 77);
  CHECK(fill_first_step(files, "ones", first) == 77);
  CHECK(error_of([&] { fill_first_step(files, "", first); }).says(fl::errc::data, "data is ''"));
  CHECK(error_of([&] { fill_first_step(files, "twos", {}); }).says(fl::errc::data, "data is 'twos'"));
  const fl::program_options nameless{{}, [](const fl::run_config&) { return std::make_unique<ones>(); }};
  CHECK(fill_first_step(nameless, "", {}) == 77);
  CHECK(fill_first_step({}, "", {}) == 0);
  CHECK(error_of([&] { fill_first_step({}, "", first); }).says(fl::errc::config, "data is empty"));
}
