// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/binding.hpp>

#include <string>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/schedule/equal.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

struct line {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    return fl::mean_squared_error(x | fl::linear<1>, fl::input<fl::real, fl::batch, 1>(g, "y"));
  }
};

/// Its second input is the same for all of a batch: a trainer refuses it.
struct shared_input {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    return fl::mean_squared_error(fl::mean_of_all(x), fl::input<fl::real, 1>(g, "y"));
  }
};
static_assert(fl::detail::inputs_have_batches<line>() && !fl::detail::inputs_have_batches<shared_input>());

int gpus = 0, opened = -1;

/// The CPU's devices, and one that there may be several of, as GPUs are.
fl::model_binding with_gpus() {
  fl::model_binding b = fl::bind_model<line, fl::devices<fl::reference<float>, fl::reference<double>>, fl::equal_number, fl::no_compression>();
  fl::device_choice c = b.devices.front();
  c.name = "cuda";
  c.make_context = nullptr;
  c.count = [] { return gpus; };
  c.open = [](int ordinal) -> std::unique_ptr<fl::device_context> {
    opened = ordinal;
    return std::make_unique<fl::device_context>();
  };
  b.devices.push_back(c);
  return b;
}

std::string message(auto&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    CHECK(e.code() == fl::errc::config);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a device is chosen by name, by number, or as what there is") {
  const fl::model_binding b = with_gpus();
  gpus = 0;
  CHECK(b.device("").name == "reference");
  CHECK(b.device("auto").name == "reference");
  CHECK(b.device("reference_f64").name == "reference_f64");
  CHECK(b.device("cuda").name == "cuda");
  CHECK(b.device("cuda:3").name == "cuda");
  gpus = 2;
  CHECK(b.device("auto").name == "cuda");
  CHECK(message([&] { b.device("abacus"); }).find("reference, reference_f64, cuda") != std::string::npos);

  const auto open = [&](const char* asked) { return b.device(asked).make(asked, 1); };
  CHECK(open("cuda") != nullptr);
  CHECK(opened == 0);
  open("cuda:3");
  CHECK(opened == 3);
  open("auto");
  CHECK(opened == 0);
  for (const char* wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"}) CHECK(message([&] { open(wrong); }).find("cuda:0") != std::string::npos);
  CHECK(message([&] { open("reference:1"); }).find("there is only one") != std::string::npos);
}

TEST_CASE("auto takes no device that lacks a kernel") {
  gpus = 1;
  fl::model_binding b = with_gpus();
  std::vector<const fl::kernel_table*> some(b.devices.back().kernels.begin(), b.devices.back().kernels.end());
  some.back() = nullptr;
  b.devices.back().kernels = some;
  CHECK(b.device("auto").name == "reference");
}
