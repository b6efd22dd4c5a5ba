// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/run/predict.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/trainer/trainer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {

struct classes {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch, 3>(g, "x");
    auto labels = fl::input<fl::i32, fl::batch>(g, "labels");
    auto hidden = fl::output("hidden", x | fl::linear<2>.named("one"));
    return fl::cross_entropy(fl::output("logits", hidden | fl::linear<4>.named("two")), labels);
  }
};
struct texts {
  static constexpr auto define(auto& g) {
    auto tokens = fl::input<fl::i32, fl::batch, fl::time>(g, "tokens");
    return fl::output("logits", fl::embedding(tokens, fl::parameter<5, 5>(g, "wte")));
  }
};
using trainer = fl::trainer<classes, fl::reference<double>>;

std::string lines_of(trainer& t, const char* output, fl::i64 rows) {
  std::vector<double> x(std::size_t(rows * 3));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i);
  struct memory {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    ~memory() { std::fclose(out), std::free(text); }
  } m;
  fl::detail::prediction_lines lines(t, output, m.out);
  lines.add({{"x", std::span(x), {rows, 3}}}, {rows, 1});
  lines.add({{"x", std::span(x), {rows, 3}}}, {rows, 1});
  std::fflush(m.out);
  return std::string(m.text, m.size);
}

}  // namespace

TEST_CASE("a line a sample: classes with their probability, or values") {
  trainer t({.batch = 4});
  auto bias = t.parameter("two.bias");
  for (int i = 0; i < 4; ++i) bias.as<double>()[i] = i == 2 ? 200 : 0;
  CHECK(lines_of(t, "logits", 2) == "{\"row\":0,\"class\":2,\"probability\":1}\n{\"row\":1,\"class\":2,\"probability\":1}\n"
                                    "{\"row\":2,\"class\":2,\"probability\":1}\n{\"row\":3,\"class\":2,\"probability\":1}\n");
  for (int i = 0; i < 2; ++i) t.parameter("one.bias").as<double>()[i] = 3 + i;
  for (int i = 0; i < 6; ++i) t.parameter("one.weight").as<double>()[i] = 0;
  CHECK(lines_of(t, "hidden", 1) == "{\"row\":0,\"values\":[3,4]}\n{\"row\":1,\"values\":[3,4]}\n");
  CHECK(error_of([&] { lines_of(t, "other", 1); }).says(fl::errc::model, "no output 'other'"));
  fl::trainer<texts, fl::reference<double>> text({.batch = 1, .time = 4});
  CHECK(error_of([&] { fl::detail::prediction_lines(text, "logits", stdout); }).says(fl::errc::model, "(batch, time, 5)", "use generate"));
}
