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

struct nothing : fl::data_source {
  fl::i64 batch() const override { return 2; }
  void fill(fl::u64, fl::i64, fl::i64, std::span<const fl::output_span>) const override {}
  fl::u64 digest() const override { return 1; }
  std::string describe() const override { return "nothing"; }
};
struct animals final : nothing {
  std::string class_name(fl::i64 label) const override { return label == 1 ? "cat" : label == 2 ? "dog" : ""; }
  std::string validation_file(fl::i64 sample) const override { return sample == 7 ? "" : "a/" + std::to_string(sample) + ".png"; }
};

// Of two batches whose samples are counted from `first` on.
std::string lines_of(trainer& t, const char* output, fl::i64 rows, const fl::data_source& data = nothing(), std::vector<std::int32_t> labels = {},
                     fl::i64 first = 0) {
  std::vector<double> x(std::size_t(rows * 3));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i);
  std::vector<fl::input_span> inputs{{"x", std::span(x), {rows, 3}}};
  if (!labels.empty()) inputs.emplace_back("labels", std::span(labels), std::initializer_list<fl::i64>{rows});
  struct memory {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* out = open_memstream(&text, &size);
    ~memory() { std::fclose(out), std::free(text); }
  } m;
  fl::detail::prediction_lines lines(t, data, output, m.out);
  for (int batch = 0; batch < 2; ++batch)
    lines.add(fl::batch_view(std::span<const fl::input_span>(inputs)), {rows, 1}, [&](fl::i64 row) { return first + batch * rows + row; });
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
  CHECK(error_of([&] { fl::detail::prediction_lines(text, nothing(), "logits", stdout); }).says(fl::errc::model, "(batch, time, 5)", "use generate"));
}

TEST_CASE("a line says which file it is of and what its label is, with the names that the data has") {
  trainer t({.batch = 4});
  auto bias = t.parameter("two.bias");
  for (int i = 0; i < 4; ++i) bias.as<double>()[i] = i == 2 ? 200 : 0;
  CHECK(lines_of(t, "logits", 1, animals(), {1}, 6)
        == "{\"row\":6,\"file\":\"a/6.png\",\"label\":1,\"label_name\":\"cat\",\"class\":2,\"class_name\":\"dog\",\"probability\":1}\n"
           "{\"row\":7,\"label\":1,\"label_name\":\"cat\",\"class\":2,\"class_name\":\"dog\",\"probability\":1}\n");
  CHECK(lines_of(t, "logits", 1, nothing(), {3}).find("{\"row\":0,\"label\":3,\"class\":2,\"probability\":1}\n") == 0);
  CHECK(lines_of(t, "hidden", 1, animals(), {0}).find("{\"row\":0,\"file\":\"a/0.png\",\"label\":0,\"values\":[") == 0);
  bias.as<double>()[1] = NAN;
  CHECK(lines_of(t, "logits", 1).find("{\"row\":0,\"class\":null,\"probability\":null}\n") == 0);
}
