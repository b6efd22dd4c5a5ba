// SPDX-License-Identifier: Apache-2.0
// An operator that is not element-wise brings its loops.
// expect: the device has no kernel for this operator, and the operator brings none
#include <fusionllm/device/reference.hpp>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;

struct reverse_op : fl::operator_base {
  static constexpr std::string_view name = "reverse";
#ifdef POSITIVE
  template <class T>
  struct kernel {
    static void forward(fl::device_context&, const fl::kernel_args&) {}
    static void backward_input(fl::device_context&, const fl::kernel_args&) {}
  };
#endif
};
struct model {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 4>(g, "x");
    return fl::record<reverse_op, fl::real, fl::shape<fl::batch, 4>>(x.g, fl::from(x.id));
  }
};

const auto table = fl::device_table<model, fl::reference<float>>();
