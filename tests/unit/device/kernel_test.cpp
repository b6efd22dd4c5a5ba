// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/device/kernel.hpp>

#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {
// A user's operator: y = x reversed along the last dimension, with a needless workspace.
struct reverse_op : fl::operator_base {
  static constexpr std::string_view name = "reverse";
  static constexpr u64 workspace(const fl::op_view& v) { return u64(v.out.last()); }
  template <class T>
  struct kernel {
    static void turn(const T* x, T* y, T* row, const fl::extents& e) {
      for (i64 r = 0; r < e.rows(); ++r) {
        for (i64 i = 0; i < e.last(); ++i) row[i] = x[r * e.last() + i];
        for (i64 i = 0; i < e.last(); ++i) y[r * e.last() + i] = row[e.last() - 1 - i];
      }
    }
    static void forward(fl::device_context&, const fl::kernel_args& a) {
      turn(a.in[0].as<const T>(), a.out.as<T>(), static_cast<T*>(a.workspace), a.out.dims);
    }
    static void backward_input(fl::device_context&, const fl::kernel_args& a) {
      turn(a.d_out.as<const T>(), a.d_in[0].as<T>(), static_cast<T*>(a.workspace), a.d_out.dims);
    }
  };
};
struct reversing {
  static constexpr auto define(auto& g) {
    auto x = fl::output("x", fl::input<fl::real, fl::batch, 5>(g, "in") | fl::linear<5>);
    auto y = fl::record<reverse_op, fl::real, fl::shape<fl::batch, 5>>(x.g, fl::from(x.id));
    return fl::mean_squared_error(fl::output("y", y), fl::input<fl::real, fl::batch, 5>(g, "target"));
  }
};
}  // namespace

TEST_CASE("a user's operator runs on any host device by its own kernel") {
  using device = fl::reference<float>;
  const fl::kernel_table& t = fl::kernel_table_of<reverse_op, device>;
  CHECK(t.backward_weight == nullptr);
  CHECK_FALSE(t.adds_partial);
  fl::op_view v;
  v.out = fl::extents_of<fl::shape<3, 5>>();
  CHECK(t.workspace_bytes(v) == 5 * sizeof(float));
  CHECK(fl::kernel_table_of<reverse_op, fl::reference<double>>.workspace_bytes(v) == 5 * sizeof(double));

  device::context c;
  graph_runner<device> r(fl::graph_of<reversing>(), fl::device_table<reversing, device>(), {3, 1}, c);
  r.randomize(1);
  r.forward();
  r.backward();
  const int x = fl::find_output(r.graph(), "x"), y = fl::find_output(r.graph(), "y");
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(r.value(y)[row * 5 + i] == r.value(x)[row * 5 + 4 - i]);
      CHECK(r.cotangent(x)[row * 5 + i] == r.cotangent(y)[row * 5 + 4 - i]);
    }
}
