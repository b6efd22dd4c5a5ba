// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/accuracy.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include <cmath>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

struct classifier {  // its logits are its inputs
  static constexpr auto define(auto& g) {
    auto images = fl::input<fl::real, fl::batch, 3>(g, "images");
    auto labels = fl::input<fl::i32, fl::batch>(g, "labels");
    return fl::cross_entropy(fl::output("logits", images | fl::linear<3>.named("fc")), labels);
  }
};
struct other_name {
  static constexpr auto define(auto& g) {
    auto images = fl::input<fl::real, fl::batch, 3>(g, "images");
    auto targets = fl::input<fl::i32, fl::batch>(g, "targets");
    return fl::cross_entropy(fl::output("logits", images | fl::linear<3>.named("fc")), targets);
  }
};
struct regression {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "images");
    auto y = fl::input<fl::real, fl::batch, 3>(g, "labels");
    return fl::mean_squared_error(fl::output("logits", x | fl::linear<3>), y);
  }
};

template <class T, class Trainer>
void make_identity(Trainer& t) {
  const auto weight = t.parameter("fc.weight"), bias = t.parameter("fc.bias");
  for (int i = 0; i < 9; ++i) weight.template as<T>()[i] = T(i % 4 == 0);
  for (int i = 0; i < 3; ++i) bias.template as<T>()[i] = 0;
}

template <class Device, class T>
void check_counts() {
  fl::trainer<classifier, Device> t({.batch = 5, .micro_batches = 3});
  make_identity<T>(t);
  fl::label_accuracy a(t);
  REQUIRE(a.applies());
  CHECK(std::isnan(a.value()));
  const T nan = T(std::nan(""));
  //                       hit       miss      tie: hit  tie: miss  not a number
  const std::vector<T> x{1, 2, 3,  1, 2, 3,  4, 4, 1,  4, 4, 1,  nan, 1, 0};
  const std::vector<std::int32_t> labels{2, 0, 0, 1, 1};
  a.add({{"images", std::span(x), {5, 3}}, {"labels", std::span(labels), {5}}});
  CHECK(a.rows() == 5);
  CHECK(a.hits() == 2);
  a.add({{"images", std::span(x).first(3), {1, 3}}, {"labels", std::span(labels).first(1), {1}}});
  CHECK(a.value() == Approx(0.5));
  const std::vector<std::int32_t> outside{3};
  CHECK(error_of([&] { a.add({{"images", std::span(x).first(3), {1, 3}}, {"labels", std::span(outside), {1}}}); })
            .says(fl::errc::model, "'labels' is 3", "expected 0 to 2"));
}

}  // namespace

TEST_CASE("hits of the likeliest class; of equals the first; none where a logit is not a number") {
  check_counts<fl::reference<float>, float>();
  check_counts<fl::reference<double>, double>();
}

TEST_CASE("labels may be called targets") {
  fl::trainer<other_name, fl::reference<float>> t({.batch = 2});
  make_identity<float>(t);
  fl::label_accuracy a(t);
  const std::vector<float> x{1, 2, 3, 3, 2, 1};
  const std::vector<std::int32_t> labels{2, 2};
  a.add({{"images", std::span(x), {2, 3}}, {"targets", std::span(labels), {2}}});
  CHECK((a.rows() == 2 && a.hits() == 1));
}

TEST_CASE("rows whose label the loss ignores do not count") {
  fl::trainer<classifier, fl::reference<float>> t({.batch = 3});
  make_identity<float>(t);
  fl::label_accuracy a(t);
  const std::vector<float> x{1, 2, 3, 3, 2, 1, 1, 2, 3};
  std::vector<std::int32_t> labels{2, -100, 0};
  const auto add = [&] { a.add({{"images", std::span(x), {3, 3}}, {"labels", std::span(labels), {3}}}); };
  add();
  CHECK((a.rows() == 2 && a.hits() == 1));
  labels = {-100, -100, -100};
  add();
  CHECK((a.rows() == 2 && a.hits() == 1));
  labels[1] = -99;
  CHECK(error_of(add).says(fl::errc::model, "'labels' is -99"));
}

TEST_CASE("models without labels have no accuracy") {
  fl::trainer<regression, fl::reference<float>> t({.batch = 2});
  CHECK_FALSE(fl::label_accuracy(t).applies());
}
