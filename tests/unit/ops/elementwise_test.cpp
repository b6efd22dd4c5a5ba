// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/ops/add.hpp>
#include <fusionllm/ops/divide.hpp>
#include <fusionllm/ops/dropout.hpp>
#include <fusionllm/ops/gelu.hpp>
#include <fusionllm/ops/multiply.hpp>
#include <fusionllm/ops/relu.hpp>
#include <fusionllm/ops/scale.hpp>
#include <fusionllm/ops/silu.hpp>
#include <fusionllm/ops/subtract.hpp>

#include <limits>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {
template <class Op, class T>
T value(T x, T y = 0) {
  return Op::template apply<T>(fl::scalar_part::value, x, y, T(0), {});
}
template <class Op, class T>
T slope(T x, T y = 0, fl::scalar_part part = fl::scalar_part::d_first) {
  return Op::template apply<T>(part, x, y, T(1), {});
}
// Derivative by differences, fourth order.
template <class Op>
double difference(double x, double y, bool second) {
  auto f = [&](double h) { return value<Op, double>(second ? x : x + h, second ? y + h : y); };
  const double h = 1e-4;
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}
}  // namespace

TEMPLATE_TEST_CASE("slopes are those of the values", "", fl::gelu_op, fl::relu_op, fl::silu_op, fl::add_op,
                   fl::multiply_op, fl::subtract_op) {
  for (double x : {-9.0, -3.1, -0.7, -1e-3, 2e-3, 0.4, 2.2, 8.0})
    for (double y : {-1.3, 0.0, 2.5}) {
      CHECK(std::abs(slope<TestType, double>(x, y) - difference<TestType>(x, y, false)) < 1e-9);
      if (std::is_same_v<TestType, fl::add_op> || std::is_same_v<TestType, fl::multiply_op>
          || std::is_same_v<TestType, fl::subtract_op>)
        CHECK(std::abs(slope<TestType, double>(x, y, fl::scalar_part::d_second) - difference<TestType>(x, y, true))
              < 1e-9);
    }
}
TEST_CASE("gelu has its known values and is exact in fp32 near -1 of the tanh") {
  CHECK(std::abs(value<fl::gelu_op, double>(1.0) - 0.84119199060827) < 1e-14);
  CHECK(std::abs(value<fl::gelu_op, double>(-1.0) + 0.15880800939172) < 1e-14);
  CHECK(value<fl::gelu_op, float>(0.0f) == 0.0f);
  for (float x = -6; x < 6; x += 0.01f) {
    const double exact = value<fl::gelu_op, double>(double(x));
    CHECK(std::abs(double(value<fl::gelu_op, float>(x)) - exact) <= 5e-6 * std::abs(exact) + 1e-30);
  }
  CHECK(value<fl::gelu_op, float>(1e10f) == 1e10f);
  CHECK(std::abs(value<fl::gelu_op, float>(-1e3f)) < 1e-30f);
}
TEST_CASE("relu and its slope are 0 up to 0") {
  CHECK(value<fl::relu_op, float>(-1.0f) == 0.0f);
  CHECK(slope<fl::relu_op, float>(0.0f) == 0.0f);
  CHECK(slope<fl::relu_op, float>(1e-30f) == 1.0f);
}
TEST_CASE("dropout drops by the word, scales what it keeps, and does neither in inference") {
  fl::scalar_args a;
  a.attr.x = 0.25;
  a.training = true;
  a.random = 0;
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::value, 3.0f, 0, 0, a) == 0.0f);
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::d_first, 3.0f, 0, 1.0f, a) == 0.0f);
  a.random = 0x40000000;  // exactly a quarter: kept
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::value, 3.0f, 0, 0, a) == 4.0f);
  a.random = 0x3fffff00;
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::value, 3.0f, 0, 0, a) == 0.0f);
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::value, std::numeric_limits<float>::quiet_NaN(), 0, 0, a) == 0.0f);
  a.training = false;
  CHECK(fl::dropout_op::apply<float>(fl::scalar_part::value, 3.0f, 0, 0, a) == 3.0f);
}
TEST_CASE("slopes of a quotient are those of the values") {
  for (double x : {-9.0, -0.7, 0.4, 8.0})
    for (double y : {-1.3, 0.5, 2.5}) {
      CHECK(std::abs(slope<fl::divide_op, double>(x, y) - difference<fl::divide_op>(x, y, false)) < 1e-9);
      CHECK(std::abs(slope<fl::divide_op, double>(x, y, fl::scalar_part::d_second) - difference<fl::divide_op>(x, y, true))
            < 1e-8);
    }
  CHECK(slope<fl::divide_op, float>(1e30f, 1e30f, fl::scalar_part::d_second) == -1e-30f);  // y * y would be infinite
}
TEST_CASE("scale multiplies value and cotangent by its factor") {
  fl::scalar_args a;
  a.attr.x = -0.25;
  CHECK(fl::scale_op::apply<float>(fl::scalar_part::value, 3.0f, 0, 0, a) == -0.75f);
  CHECK(fl::scale_op::apply<double>(fl::scalar_part::d_first, 3.0, 0, 2, a) == -0.5);
}
TEST_CASE("silu has its known values and its slope stays finite far out, in fp32 and in double") {
  CHECK(std::abs(value<fl::silu_op, double>(1.0) - 0.73105857863000487925) < 1e-15);
  CHECK(value<fl::silu_op, float>(0.0f) == 0.0f);
  for (float x = -20; x < 20; x += 0.01f) {
    const double exact = value<fl::silu_op, double>(double(x)), d = slope<fl::silu_op, double>(double(x));
    CHECK(std::abs(double(value<fl::silu_op, float>(x)) - exact) <= 5e-7 * std::abs(exact) + 1e-30);
    CHECK(std::abs(double(slope<fl::silu_op, float>(x)) - d) <= 1e-6 * (1 + std::abs(d)));
  }
  CHECK(value<fl::silu_op, float>(1e10f) == 1e10f);
  CHECK(slope<fl::silu_op, float>(1e10f) == 1.0f);
  for (double x : {-1e3, -1e4}) {
    CHECK(std::abs(value<fl::silu_op, double>(x)) < 1e-300);
    CHECK(std::abs(slope<fl::silu_op, double>(x)) < 1e-300);
    CHECK(std::abs(slope<fl::silu_op, float>(float(x))) < 1e-30f);
  }
}
