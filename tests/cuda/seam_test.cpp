// SPDX-License-Identifier: Apache-2.0
// A program compiled by the host's compiler and a device table compiled by nvcc are one program: the same model on both
// sides, and a kernel wherever one is promised.
#include <fusionllm/device/cuda.hpp>

#include <vector>

#include "catch.hpp"
#include "model.hpp"

namespace fl = fusionllm;

namespace {

const fl::device_side& side() { return fl::device_tables<seam::model, fl::cuda>(); }

bool promised(const fl::node& n) { return !n.op->placeholder; }

template <class F>
fl::error error_of(F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    return e;
  }
  return fl::error(fl::errc::ok, "no error");
}

}  // namespace

TEST_CASE("both sides see the same model") {
  constexpr auto g = fl::graph_of<seam::model>();
  CHECK(side().fingerprint == fl::fingerprint(g));
  CHECK_NOTHROW(fl::require_same_model(g, side()));
}

TEST_CASE("another model is refused") {
  fl::device_side other = side();
  other.fingerprint ^= 1;
  const auto e = error_of([&] { fl::require_same_model(fl::graph_of<seam::model>(), other); });
  CHECK(e.code() == fl::errc::model);
  CHECK(std::string(e.what()).find("compile the .cu file again") != std::string::npos);
}

TEST_CASE("every promised operator has its functions, every other none") {
  constexpr auto g = fl::graph_of<seam::model>();
  REQUIRE(side().tables.size() == g.nodes.size());
  int chains = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const fl::node& n = g.nodes[i];
    const fl::kernel_table* t = side().tables[i];
    INFO("node " << i << " (" << n.op->name << ")");
    CHECK((t != nullptr) == promised(n));
    chains += n.links != 0;
    if (!t) continue;
    CHECK(t->forward != nullptr);
    CHECK(t->backward_input != nullptr);
    CHECK((t->backward_weight != nullptr) == (n.param_count() > 0));
  }
  CHECK(chains == 2);
}

TEST_CASE("a plan that needs a missing kernel names the operator") {
  constexpr auto g = fl::graph_of<seam::model>();
  std::vector<const fl::kernel_table*> tables(side().tables.begin(), side().tables.end());
  fl::flags wanted(g.nodes.size(), fl::u8(1));
  CHECK_NOTHROW(fl::require_kernels(g, side(), wanted));
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (g.nodes[i].op->name == "layer_norm") tables[i] = nullptr;
  fl::device_side other = side();
  other.tables = tables;
  const auto e = error_of([&] { fl::require_kernels(g, other, wanted); });
  CHECK(e.code() == fl::errc::plan);
  CHECK(std::string(e.what()).find("layer_norm") != std::string::npos);
  for (std::size_t i = 0; i < tables.size(); ++i) wanted[i] = tables[i] != nullptr;
  CHECK_NOTHROW(fl::require_kernels(g, other, wanted));
}

TEST_CASE("a GPU that is not there is a typed error") {
  const auto e = error_of([] { side().open(side().count(), fl::product_precision::f32); });
  CHECK(e.code() == fl::errc::resource);
  CHECK(std::string(e.what()).find("run this peer on the cpu device") != std::string::npos);
}
