// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/graph/fingerprint.hpp>

#include <set>

#include "catch.hpp"
#include "models.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

template <class F>
struct made_by {
  static constexpr auto define(auto& g) { return F{}(g); }
};
struct base {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4> | fl::dropout(0.1);
  }
};
struct other_width {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<5> | fl::dropout(0.1);
  }
};
struct other_operator {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4> | fl::relu;
  }
};
struct other_probability {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4> | fl::dropout(0.1000000001);
  }
};
struct other_name {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>.named("fc") | fl::dropout(0.1);
  }
};
struct other_input {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "y") | fl::linear<4> | fl::dropout(0.1);
  }
};
struct other_bias {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>.without_bias() | fl::dropout(0.1);
  }
};
struct with_output {
  constexpr auto operator()(auto& g) const {
    return fl::output("y", fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>) | fl::dropout(0.1);
  }
};
struct other_start {
  constexpr auto operator()(auto& g) const {
    return fl::input<fl::real, fl::batch, 4>(g, "x") | fl::linear<4>.initialized(fl::normal(1.0)) | fl::dropout(0.1);
  }
};
template <int Momentum>
struct with_norm {
  constexpr auto operator()(auto& g) const {
    auto norm = fl::batch_norm;
    norm.momentum = Momentum / 100.0;
    return fl::input<fl::real, fl::batch, 4>(g, "x") | norm;
  }
};
template <class F>
constexpr fl::u64 print = fl::fingerprint(fl::graph_of<made_by<F>>());

}  // namespace

TEST_CASE("what changes results or names changes the fingerprint") {
  const std::set<fl::u64> all{print<base>,       print<other_width>, print<other_operator>, print<other_probability>,
                              print<other_name>, print<other_input>, print<other_bias>,     print<with_output>};
  CHECK(all.size() == 8);
}
TEST_CASE("the momentum of running statistics enters the fingerprint") {
  CHECK(print<with_norm<10>> != print<with_norm<11>>);
  CHECK(print<with_norm<0>> != print<with_norm<10>>);
}
TEST_CASE("initial values do not enter the fingerprint") { CHECK(print<base> == print<other_start>); }
