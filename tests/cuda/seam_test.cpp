// SPDX-License-Identifier: Apache-2.0
// A program compiled by the host's compiler and a device table compiled by nvcc are one program: the same model on both
// sides, and a kernel wherever one is promised.
#include <fusionllm/device/cuda.hpp>

#include "catch.hpp"
#include "model.hpp"

namespace fl = fusionllm;

namespace {

const fl::device_side& side() { return fl::device_tables<seam::model, fl::cuda>(); }

bool promised(const fl::node& n) { return n.links != 0 || n.op->elementwise || n.op->name == "linear"; }

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
  int chains = 0, missing = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const fl::node& n = g.nodes[i];
    const fl::kernel_table* t = side().tables[i];
    INFO("node " << i << " (" << n.op->name << ")");
    CHECK((t != nullptr) == promised(n));
    missing += !t && !n.op->placeholder;
    chains += n.links != 0;
    if (!t) continue;
    CHECK(t->forward != nullptr);
    CHECK(t->backward_input != nullptr);
    CHECK((t->backward_weight != nullptr) == (n.param_count() > 0));
    CHECK(t->workspace_bytes(g.view(int(i), {7, 1})) == 0);
  }
  CHECK(chains == 2);
  CHECK(missing == 2);  // layer_norm, mean_squared_error
}

TEST_CASE("a plan that needs a missing kernel names the operator") {
  constexpr auto g = fl::graph_of<seam::model>();
  fl::flags wanted(g.nodes.size(), fl::u8(0));
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = promised(g.nodes[i]) || g.nodes[i].op->placeholder;
  CHECK_NOTHROW(fl::require_kernels(g, side(), wanted));
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = 1;
  const auto e = error_of([&] { fl::require_kernels(g, side(), wanted); });
  CHECK(e.code() == fl::errc::plan);
  CHECK(std::string(e.what()).find("layer_norm") != std::string::npos);
}

TEST_CASE("a GPU that is not there is a typed error") {
  const auto e = error_of([] { side().open(side().count()); });
  CHECK(e.code() == fl::errc::resource);
  CHECK(std::string(e.what()).find("run this peer on the cpu device") != std::string::npos);
}
