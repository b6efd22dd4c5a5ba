// SPDX-License-Identifier: Apache-2.0
// Batches of pictures against a slow reference that pads, cuts and mirrors one step after the other.
#include <fusionllm/trainer/image_data.hpp>

#include <set>

#include "catch.hpp"
#include "image_files.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;
using fl::i64;
using fl::u64;

namespace {

fl::image_data make(std::unique_ptr<fl::image_set> train, fl::image_options o, std::unique_ptr<fl::image_set> test = nullptr) {
  return fl::image_data({"made", std::move(train), std::move(test)}, std::move(o));
}

template <class T>
struct batch_of {
  std::vector<T> images;
  std::vector<std::int32_t> labels;
  bool operator==(const batch_of&) const = default;
};

template <class T = float>
batch_of<T> fill(const fl::data_source& d, u64 step, i64 begin, i64 end, i64 c, i64 h, i64 w, bool held_out = false) {
  batch_of<T> b{std::vector<T>(std::size_t((end - begin) * c * h * w), T(-99)),
                std::vector<std::int32_t>(std::size_t(end - begin), -99)};
  const fl::output_span inputs[] = {{"labels", std::span(b.labels), {end - begin}},
                                    {"images", std::span(b.images), {end - begin, c, h, w}}};
  if (held_out) d.fill_validation(i64(step), begin, end, inputs);
  else d.fill(step, begin, end, inputs);
  return b;
}

// A plane as rows of bytes, black outside.
using plane = std::vector<std::vector<int>>;
plane padded(const plane& p, i64 top, i64 left, i64 height, i64 width) {
  plane q(std::size_t(height), std::vector<int>(std::size_t(width), 0));
  for (std::size_t y = 0; y < p.size(); ++y)
    for (std::size_t x = 0; x < p[y].size(); ++x) q[y + std::size_t(top)][x + std::size_t(left)] = p[y][x];
  return q;
}

// Picture `p` in the middle of height x width, padded on all sides, cut at the drawn place, mirrored.
std::vector<double> reference(const fl::picture_view& p, const fl::image_options& o, fl::crop_flip change, i64 channels, i64 height,
                              i64 width) {
  std::vector<double> out;
  const i64 pad = o.augment.padding;
  for (i64 c = 0; c < channels; ++c) {
    plane source(std::size_t(p.height), std::vector<int>(std::size_t(p.width)));
    for (i64 y = 0; y < p.height; ++y)
      for (i64 x = 0; x < p.width; ++x)
        source[std::size_t(y)][std::size_t(x)] = p.pixels[((p.channels == 1 ? 0 : c) * p.height + y) * p.width + x];
    const plane input = padded(source, (height - p.height) / 2, (width - p.width) / 2, height, width);
    const plane wide = padded(input, pad, pad, height + 2 * pad, width + 2 * pad);
    const double mean = o.statistics.mean.size() == 1 ? o.statistics.mean[0] : o.statistics.mean[std::size_t(c)];
    const double deviation = o.statistics.deviation.size() == 1 ? o.statistics.deviation[0] : o.statistics.deviation[std::size_t(c)];
    for (i64 y = 0; y < height; ++y) {
      std::vector<int> row(wide[std::size_t(y + pad + change.dy)].begin() + pad + change.dx,
                           wide[std::size_t(y + pad + change.dy)].begin() + pad + change.dx + width);
      if (change.mirrored) std::reverse(row.begin(), row.end());
      for (int v : row) out.push_back((double(v) / 255 - mean) / deviation);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("every row is what the slow reference makes, for all shifts, sizes and channels") {
  struct one {
    i64 channels, height, width, to_channels, to_height, to_width, padding;
  };
  for (const one& s : {one{1, 28, 28, 3, 32, 32, 4}, one{3, 32, 32, 3, 32, 32, 4}, one{1, 5, 7, 1, 5, 7, 0}, one{3, 4, 4, 3, 9, 6, 2},
                       one{1, 3, 2, 3, 3, 2, 8}, one{1, 1, 1, 1, 2, 2, 1}}) {
    fl::image_options o{.rows = 8, .seed = 11, .augment = {.padding = s.padding, .flip = true}};
    o.statistics = s.to_channels == 3 ? fl::pixel_statistics{{0.1, 0.2, 0.3}, {0.5, 0.25, 2}} : fl::pixel_statistics{{0.4}, {0.3}};
    const made_images set(20, s.channels, s.height, s.width);
    const auto d = make(std::make_unique<made_images>(20, s.channels, s.height, s.width), o);
    fl::picture room;
    for (u64 step = 0; step < 12; ++step) {
      const auto b = fill<double>(d, step, 0, 8, s.to_channels, s.to_height, s.to_width);
      const auto single = fill<float>(d, step, 0, 8, s.to_channels, s.to_height, s.to_width);
      std::vector<double> expected;
      for (i64 row = 0; row < 8; ++row) {
        const i64 sample = d.order().sample(step, row);
        const auto change = fl::draw_augmentation(o.augment, 11, (step * 8 + u64(row)) / 20, u64(sample));
        const auto r = reference(set.read(sample, room), o, change, s.to_channels, s.to_height, s.to_width);
        expected.insert(expected.end(), r.begin(), r.end());
        CHECK(b.labels[std::size_t(row)] == sample % 10);
      }
      REQUIRE(b.images == expected);
      REQUIRE(single.images == std::vector<float>(expected.begin(), expected.end()));
    }
  }
}

TEST_CASE("a step is the same whoever fills which of its rows, and when") {
  const auto d = make(std::make_unique<made_images>(50, 1, 6, 6), {.rows = 12, .seed = 5});
  const auto again = make(std::make_unique<made_images>(50, 1, 6, 6), {.rows = 12, .seed = 5});
  for (u64 step : {7u, 3u, 0u, 1000000u, 4u}) {  // any order: a resumed run asks from the middle
    const auto whole = fill(d, step, 0, 12, 3, 8, 8);
    for (const auto& cuts : {std::vector<i64>{0, 12}, {0, 1, 12}, {0, 5, 6, 12}, {0, 4, 8, 12}, {0, 0, 11, 12}}) {
      batch_of<float> parts;
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const auto p = fill(again, step, cuts[i], cuts[i + 1], 3, 8, 8);
        parts.images.insert(parts.images.end(), p.images.begin(), p.images.end());
        parts.labels.insert(parts.labels.end(), p.labels.begin(), p.labels.end());
      }
      CHECK(parts == whole);
    }
  }
  const auto other = make(std::make_unique<made_images>(50, 1, 6, 6), {.rows = 12, .seed = 6});
  CHECK_FALSE(fill(other, 0, 0, 12, 3, 8, 8) == fill(d, 0, 0, 12, 3, 8, 8));
}

TEST_CASE("an epoch shows every picture once, in another order and with other changes each time") {
  const auto d = make(std::make_unique<made_images>(30, 1, 6, 6, 30), {.rows = 10, .seed = 2});
  std::vector<std::vector<std::int32_t>> orders;
  std::vector<std::vector<float>> first_picture;
  for (u64 epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int32_t> order;
    for (u64 step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      const auto b = fill(d, step, 0, 10, 1, 6, 6);
      order.insert(order.end(), b.labels.begin(), b.labels.end());
      for (std::size_t r = 0; r < 10; ++r)
        if (b.labels[r] == 0) first_picture.emplace_back(b.images.begin() + long(36 * r), b.images.begin() + long(36 * r + 36));
    }
    CHECK(std::set(order.begin(), order.end()).size() == 30);
    orders.push_back(order);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
  REQUIRE(first_picture.size() == 3);
  CHECK_FALSE((first_picture[0] == first_picture[1] && first_picture[1] == first_picture[2]));
}

TEST_CASE("held-out pictures come in order, unchanged, the last batch with what is left") {
  const auto d = make(std::make_unique<made_images>(5, 1, 4, 4), {.rows = 4, .statistics = {{0}, {1}}},
                      std::make_unique<made_images>(10, 1, 4, 4));
  const made_images set(10, 1, 4, 4);
  CHECK(d.test_count() == 10);
  REQUIRE(d.validation_batches() == 3);
  const i64 rows[] = {4, 4, 2};
  fl::picture room;
  for (i64 b = 0; b < 3; ++b) {
    CHECK(d.validation_rows(b) == rows[b]);
    CHECK(d.validation_sample(b, 1) == 4 * b + 1);
    const auto all = fill<double>(d, u64(b), 0, 4, 1, 4, 4, true);
    for (i64 r = 0; r < 4; ++r) {
      const i64 sample = (4 * b + r) % 10;
      CHECK(all.labels[std::size_t(r)] == sample);
      for (i64 k = 0; k < 16; ++k) REQUIRE(all.images[std::size_t(16 * r + k)] == set.read(sample, room).pixels[k] / 255.0);
    }
  }
  CHECK(error_of([&] { fill(d, 3, 0, 4, 1, 4, 4, true); }).says(fl::errc::data, "validation batch 3", "which has 3"));
  const auto none = make(std::make_unique<made_images>(5, 1, 4, 4), {.rows = 4});
  CHECK(none.validation_batches() == 0);
  CHECK(error_of([&] { fill(none, 0, 0, 4, 1, 4, 4, true); }).says(fl::errc::data, "which has 0"));
}

TEST_CASE("of held-out pictures that lie class by class the first batches hold all classes, and every picture comes once") {
  class sorted final : public fl::image_set {  // 10 classes of 40
   public:
    i64 count() const override { return 400; }
    i64 classes() const override { return 10; }
    i64 label(i64 i) const override { return i / 40; }
    fl::picture_view read(i64 i, fl::picture& room) const override {
      room = {1, 1, 2, {fl::u8(i / 256), fl::u8(i % 256)}};
      return room;
    }
    bool one_size() const override { return true; }
    bool by_class() const override { return true; }
    fl::u64 digest() const override { return 1; }
    std::string name_of(i64) const override { return "sorted"; }
  };
  const auto d = make(std::make_unique<made_images>(5, 1, 1, 2), {.rows = 16, .statistics = {{0}, {1}}}, std::make_unique<sorted>());
  REQUIRE(d.validation_batches() == 25);
  std::vector<int> first(10);
  std::set<i64> seen;
  for (i64 b = 0; b < 25; ++b) {
    const auto all = fill<double>(d, u64(b), 0, 16, 1, 1, 2, true);
    for (i64 r = 0; r < 16; ++r) {
      const i64 sample = d.validation_sample(b, r);
      seen.insert(sample);
      REQUIRE(all.labels[std::size_t(r)] == sample / 40);
      REQUIRE(std::lround(255 * (256 * all.images[std::size_t(2 * r)] + all.images[std::size_t(2 * r + 1)])) == sample);
      first[std::size_t(sample / 40)] += b < 8;
    }
  }
  CHECK(seen.size() == 400);
  for (int n : first) CHECK((n >= 4 && n <= 24));  // of 128
}

TEST_CASE("mean and deviation are measured on the training set") {
  const made_images set(40, 3, 5, 4);
  const auto s = fl::measure_pixels(set);
  REQUIRE((s.mean.size() == 3 && s.deviation.size() == 3));
  fl::picture room;
  for (i64 c = 0; c < 3; ++c) {
    double sum = 0, square = 0;
    for (i64 i = 0; i < 40; ++i)
      for (i64 k = 0; k < 20; ++k) sum += set.read(i, room).row(c, 0)[k] / 255.0;
    for (i64 i = 0; i < 40; ++i)
      for (i64 k = 0; k < 20; ++k) square += std::pow(set.read(i, room).row(c, 0)[k] / 255.0 - sum / 800, 2);
    CHECK(s.mean[std::size_t(c)] == Approx(sum / 800).epsilon(1e-12));
    CHECK(s.deviation[std::size_t(c)] == Approx(std::sqrt(square / 800)).epsilon(1e-12));
  }
  // A batch that is the whole set, unchanged, has mean 0 and deviation 1.
  const auto d = make(std::make_unique<made_images>(40, 3, 5, 4), {.rows = 40, .augment = {.padding = 0, .flip = false}});
  const auto b = fill<double>(d, 0, 0, 40, 3, 5, 4);
  double sum = 0, square = 0;
  for (double x : b.images) sum += x, square += x * x;
  CHECK(std::abs(sum) < 1e-9);
  CHECK(square / double(b.images.size()) == Approx(1).epsilon(1e-9));
}

TEST_CASE("an input that pictures do not fit is named") {
  const auto d = make(std::make_unique<made_images>(5, 1, 4, 4), {.rows = 2});
  CHECK(error_of([&] { fill(d, 0, 0, 2, 1, 3, 4); }).says(fl::errc::model, "made picture", "4 x 4 pixels", "'images' 3 x 4"));
  CHECK(error_of([&] { fill(d, 0, 0, 2, 2, 4, 4); }).says(fl::errc::model, "'images'", "(2, 2, 4, 4)", "1 or 3"));
  CHECK(error_of([&] { fill(d, 0, 0, 3, 1, 4, 4); }).says(fl::errc::data, "rows 0 to 3 of a batch of 2"));
  std::vector<std::int32_t> x(32);
  const fl::output_span tokens[] = {{"tokens", std::span(x), {2, 16}}};
  CHECK(error_of([&] { d.fill(0, 0, 2, tokens); }).says(fl::errc::model, "'tokens'", "'images' and 'labels'"));
  const fl::output_span whole[] = {{"images", std::span(x), {2, 1, 4, 4}}};
  CHECK(error_of([&] { d.fill(0, 0, 2, whole); }).says(fl::errc::model, "'images' is int32"));
  const fl::output_span labels[] = {{"labels", std::span(x).first(2), {2, 1}}};
  CHECK(error_of([&] { d.fill(0, 0, 2, labels); }).says(fl::errc::model, "'labels' is int32 (2, 1)", "int32 (2)"));
  const auto colour = make(std::make_unique<made_images>(5, 3, 4, 4), {.rows = 2, .statistics = {{0}, {1}}});
  CHECK(error_of([&] { fill(colour, 0, 0, 2, 1, 4, 4); }).says(fl::errc::model, "has 3 channels", "'images' 1"));
  const auto measured = make(std::make_unique<made_images>(5, 3, 4, 4), {.rows = 2});
  CHECK(error_of([&] { fill(measured, 0, 0, 2, 1, 4, 4); }).says(fl::errc::model, "statistics of pixels have 3"));
}

TEST_CASE("labels alone and pictures alone are filled for stages that read one of them") {
  const auto d = make(std::make_unique<made_images>(9, 1, 4, 4), {.rows = 3, .seed = 4});
  const auto both = fill(d, 2, 0, 3, 1, 4, 4);
  std::vector<std::int32_t> l(3);
  const fl::output_span labels[] = {{"labels", std::span(l), {3}}};
  d.fill(2, 0, 3, labels);
  CHECK(l == both.labels);
  const fl::output_span targets[] = {{"targets", std::span(l), {3}}};
  std::fill(l.begin(), l.end(), -1);
  d.fill(2, 0, 3, targets);
  CHECK(l == both.labels);
  const auto named = make(std::make_unique<made_images>(9, 1, 4, 4), {.rows = 3, .seed = 4, .images = "x", .labels = "y"});
  CHECK(error_of([&] { named.fill(2, 0, 3, targets); }).says(fl::errc::model, "'targets'", "'x' and 'y'"));
  std::vector<float> p(48);
  const fl::output_span images[] = {{"images", std::span(p), {3, 1, 4, 4}}};
  d.fill(2, 0, 3, images);
  CHECK(p == both.images);
}

TEST_CASE("options out of range, sets that do not fit") {
  const auto set = [](i64 classes = 10) { return std::make_unique<made_images>(5, 1, 4, 4, classes); };
  CHECK(error_of([&] { make(nullptr, {}); }).says(fl::errc::data, "'made' has no pictures"));
  CHECK(error_of([&] { make(set(), {.rows = 0}); }).says(fl::errc::data, "batch of 0 rows"));
  CHECK(error_of([&] { make(set(), {.classes = 9}); }).says(fl::errc::data, "has 10 classes, the model knows 9"));
  CHECK(error_of([&] { make(set(3), {}, set(4)); }).says(fl::errc::data, "4 classes to test on, 3 to train on"));
  CHECK(error_of([&] { make(set(), {.augment = {.padding = -1}}); }).says(fl::errc::config, "padding is -1"));
  CHECK(error_of([&] { make(set(), {.statistics = {{0}, {0}}}); }).says(fl::errc::config, "deviation of pixels is 0"));
  CHECK(error_of([&] { make(set(), {.statistics = {{0, 1}, {1}}}); }).says(fl::errc::config, "statistics of 2 channels"));
  CHECK(error_of([&] { make(set(), {.statistics = {{}, {1}}}); }).says(fl::errc::config, "statistics of 0 channels"));
}

TEST_CASE("the digest is that of content and changes") {
  const auto digest = [](fl::image_options o) { return make(std::make_unique<made_images>(5, 1, 4, 4), std::move(o)).digest(); };
  CHECK(digest({.seed = 1}) == digest({.seed = 2}));
  CHECK(digest({}) != digest({.augment = {.flip = false}}));
  CHECK(digest({}) != digest({.augment = {.padding = 3}}));
  CHECK(digest({}) != digest({.statistics = {{0}, {1}}}));
}

TEST_CASE("scaling: flat stays flat, the middle is kept, halves are means") {
  fl::picture p{3, 6, 10, std::vector<fl::u8>(180, 77)}, q;
  fl::detail::scale_to(p, 4, 4, q);
  CHECK((q.channels == 3 && q.height == 4 && q.width == 4));
  CHECK(q.pixels == std::vector<fl::u8>(48, 77));
  fl::detail::scale_to(p, 13, 29, q);
  CHECK(q.pixels == std::vector<fl::u8>(3 * 13 * 29, 77));
  // Two columns of the middle, of ten, at the same size.
  fl::picture wide{1, 2, 10, std::vector<fl::u8>(20)};
  for (std::size_t i = 0; i < 20; ++i) wide.pixels[i] = fl::u8(i);
  fl::detail::scale_to(wide, 2, 2, q);
  CHECK(q.pixels == std::vector<fl::u8>{4, 5, 14, 15});
  // A ramp twice as large gives the ramp of means, away from the border.
  fl::picture ramp{1, 16, 16, std::vector<fl::u8>(256)};
  for (std::size_t i = 0; i < 256; ++i) ramp.pixels[i] = fl::u8(8 * (i % 16));
  fl::detail::scale_to(ramp, 8, 8, q);
  for (int x = 1; x < 7; ++x) CHECK(int(q.pixels[std::size_t(x)]) == 16 * x + 4);
  for (auto [h, w] : {std::pair<i64, i64>{1, 1}, {1, 500}, {500, 1}, {3, 2}}) {
    const fl::picture odd{1, h, w, std::vector<fl::u8>(std::size_t(h * w), 200)};
    fl::detail::scale_to(odd, 7, 5, q);
    CHECK(q.pixels == std::vector<fl::u8>(35, 200));
  }
}
