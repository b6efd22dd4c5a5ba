// SPDX-License-Identifier: Apache-2.0
// Batches of labelled pictures for a model with an input "images", real (batch, channels, height, width), and one of labels,
// "labels" or "targets", i32 (batch). The model's own extents say what a picture becomes: smaller ones of one size lie in the middle of
// black, pictures of all sizes are scaled and cut, grey ones fill all channels.
#pragma once

#include "../core/xxh3.hpp"
#include "augment.hpp"
#include "data.hpp"
#include "image_data_normal.hpp"
#include "image_data_scale.hpp"
#include "sampler.hpp"

namespace fusionllm::inline v0 {

struct image_options {
  i64 rows = 16;                   ///< pictures of a step
  u64 seed = 1;                    ///< of their order and of what is drawn for them
  i64 classes = 0;                 ///< that the model knows; 0: as many as the data has
  augmentation augment{};          ///< of pictures that are trained on
  pixel_statistics statistics{};   ///< empty: measured on the training set; of folders, those of ImageNet
  std::string images = "images";   ///< the model's input
  std::string labels{};            ///< the model's target; empty: "labels" or "targets"
};

class image_data final : public data_source {
 public:
  /// Errors: errc::data when there is nothing to train on or the data has other classes; errc::config when an option is out
  /// of range.
  image_data(image_splits splits, image_options options)
      : splits_(std::move(splits)), options_(std::move(options)), order_(options_.seed, train_count(), options_.rows) {
    if (options_.classes > 0 && splits_.train->classes() > options_.classes)
      fail(errc::data, "data '", splits_.path, "' has ", splits_.train->classes(), " classes, the model knows ", options_.classes,
           ": use a model with as many outputs");
    if (splits_.test && splits_.test->classes() > splits_.train->classes())
      fail(errc::data, "data '", splits_.path, "' has ", splits_.test->classes(), " classes to test on, ", splits_.train->classes(),
           " to train on");
    if (options_.augment.padding < 0 || options_.augment.padding > 1024)
      fail(errc::config, "augment.padding is ", options_.augment.padding, ", expected 0 to 1024");
    if (options_.statistics.mean.empty() && options_.statistics.deviation.empty())
      options_.statistics = splits_.train->one_size() ? measure_pixels(*splits_.train)
                                                      : pixel_statistics{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    detail::check(options_.statistics);
    for (std::size_t c = 0; c < channels_most; ++c) {
      single_.emplace_back(options_.statistics, c);
      double_.emplace_back(options_.statistics, c);
    }
  }

  i64 batch() const override { return options_.rows; }
  const image_options& options() const { return options_; }
  const sampler& order() const { return order_; }
  i64 classes() const { return splits_.train->classes(); }
  i64 train_count() const {
    if (!splits_.train) fail(errc::data, "data '", splits_.path, "' has no pictures to train on");
    return splits_.train->count();
  }
  i64 test_count() const { return splits_.test ? splits_.test->count() : 0; }

  void fill(u64 step, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    const auto targets = check(begin, end, inputs);
    picture read, scaled;
    for (i64 row = begin; row < end; ++row) {
      const i64 sample = order_.sample(step, row);
      const crop_flip change = draw_augmentation(options_.augment, options_.seed, order_.epoch_of(step, row), u64(sample));
      write(*splits_.train, sample, change, row - begin, targets, read, scaled);
    }
  }

  /// The last batch holds what is left; its other rows begin again.
  i64 validation_batches() const override { return (test_count() + options_.rows - 1) / options_.rows; }
  i64 validation_rows(i64 index) const override { return (std::min)(options_.rows, test_count() - index * options_.rows); }
  /// Of pictures that lie class by class in an order that mixes them: the first batches alone may be all that is scored.
  i64 validation_sample(i64 index, i64 row) const override {
    const i64 at = (index * options_.rows + row) % test_count();
    return splits_.test->by_class() ? i64(permutation(0, 0, u64(test_count()))(u64(at))) : at;
  }
  void fill_validation(i64 index, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    const auto targets = check(begin, end, inputs);
    if (index < 0 || index >= validation_batches())
      fail(errc::data, "validation batch ", index, " of data '", splits_.path, "', which has ", validation_batches());
    picture read, scaled;
    for (i64 row = begin; row < end; ++row)
      write(*splits_.test, validation_sample(index, row), {}, row - begin, targets, read, scaled);
  }

  std::string class_name(i64 label) const override {
    return label >= 0 && label < classes() ? splits_.train->class_name(label) : std::string();
  }
  std::string validation_file(i64 sample) const override { return splits_.test->file_of(sample); }

  /// Of the content and of all options but the seed.
  u64 digest() const override {
    u64 h[] = {splits_.train->digest(), splits_.test ? splits_.test->digest() : 0, u64(options_.augment.padding), options_.augment.flip};
    u64 d = XXH3_64bits(h, sizeof h);
    for (const auto* v : {&options_.statistics.mean, &options_.statistics.deviation})
      d = XXH3_64bits_withSeed(v->data(), v->size() * sizeof(double), d);
    return d;
  }
  std::string describe() const override {
    return splits_.path + ": " + std::to_string(train_count()) + " pictures of " + std::to_string(classes()) + " classes to train on, " +
           std::to_string(test_count()) + " held out";
  }

 private:
  static constexpr std::size_t channels_most = 3;

  struct outputs {
    const output_span* images = nullptr;
    const output_span* labels = nullptr;
  };

  bool is_labels(std::string_view name) const {
    return options_.labels.empty() ? name == "labels" || name == "targets" : name == options_.labels;
  }
  outputs check(i64 begin, i64 end, std::span<const output_span> inputs) const {
    if (begin < 0 || end < begin || end > options_.rows)
      fail(errc::data, "rows ", begin, " to ", end, " of a batch of ", options_.rows);
    outputs found;
    for (const auto& input : inputs) {
      if (input.name == options_.images) found.images = &input;
      else if (is_labels(input.name)) found.labels = &input;
      else
        fail(errc::model, "the model has an input '", input.name, "', pictures have '", options_.images, "' and '",
             options_.labels.empty() ? "labels" : options_.labels, "': rename the input, or give the trainer a data source of your own");
    }
    if (const auto* i = found.images) {
      const extents& e = i->dims;
      if ((i->type != dtype::f32 && i->type != dtype::f64) || e.rank != 4 || e.d[0] != end - begin || (e.d[1] != 1 && e.d[1] != 3) ||
          e.d[2] < 1 || e.d[3] < 1)
        fail(errc::model, "input '", i->name, "' is ", name_of(i->type), ' ', detail::shape_text{e}, ", pictures fill float32 or float64 (",
             end - begin, ", 1 or 3, height, width)");
      for (const auto* s : {&options_.statistics.mean, &options_.statistics.deviation})
        if (s->size() != 1 && i64(s->size()) != e.d[1])
          fail(errc::model, "input '", i->name, "' has ", e.d[1], " channels, the statistics of pixels have ", s->size(),
               ": set one mean and deviation for all channels, or one each");
    }
    if (const auto* l = found.labels; l && (l->type != dtype::int32 || l->dims != extents{1, {end - begin}}))
      fail(errc::model, "input '", l->name, "' is ", name_of(l->type), ' ', detail::shape_text{l->dims}, ", labels fill int32 ",
           detail::shape_text{{1, {end - begin}}});
    return found;
  }

  void write(const image_set& set, i64 i, crop_flip change, i64 row, const outputs& to, picture& read, picture& scaled) const {
    if (to.labels) static_cast<std::int32_t*>(to.labels->data)[row] = std::int32_t(set.label(i));
    if (!to.images) return;
    const i64 channels = to.images->dims.d[1], height = to.images->dims.d[2], width = to.images->dims.d[3];
    picture_view p = set.read(i, read);
    if (!set.one_size() && (p.height != height || p.width != width)) {
      detail::scale_to(p, height, width, scaled);
      p = scaled;
    }
    if (p.height > height || p.width > width)
      fail(errc::model, set.name_of(i), " has ", p.height, " x ", p.width, " pixels, the model's input '", to.images->name, "' ", height,
           " x ", width, ": use a model whose input is as large");
    if (p.channels != channels && p.channels != 1)
      fail(errc::model, set.name_of(i), " has ", p.channels, " channels, the model's input '", to.images->name, "' ", channels,
           ": use a model whose input has as many");
    const i64 at = row * channels * height * width;
    if (to.images->type == dtype::f32) place(p, change, channels, height, width, single_, static_cast<float*>(to.images->data) + at);
    else place(p, change, channels, height, width, double_, static_cast<double*>(to.images->data) + at);
  }

  // Output (y, x) is the picture's (y + down, x + right), or its mirror image, and black where that is outside.
  template <class T>
  static void place(const picture_view& p, crop_flip change, i64 channels, i64 height, i64 width,
                    const std::vector<detail::pixel_table<T>>& tables, T* to) {
    const i64 down = change.dy - (height - p.height) / 2, right = change.dx - (width - p.width) / 2;
    const i64 left = std::clamp(-right, i64(0), width), end = std::clamp(p.width - right, left, width);
    for (i64 c = 0; c < channels; ++c) {
      const auto& table = tables[std::size_t(c)].of;
      for (i64 y = 0; y < height; ++y, to += width) {
        const i64 from = y + down;
        const bool inside = from >= 0 && from < p.height;
        const i64 first = inside ? left : width, last = inside ? end : width;
        std::fill(to, to + first, table[0]);
        if (inside) {
          const u8* pixels = p.row(p.channels == 1 ? 0 : c, from);
          for (i64 x = first; x < last; ++x) to[x] = table[pixels[x + right]];
        }
        std::fill(to + last, to + width, table[0]);
        if (change.mirrored) std::reverse(to, to + width);
      }
    }
  }

  image_splits splits_;
  image_options options_;
  sampler order_;
  std::vector<detail::pixel_table<float>> single_;
  std::vector<detail::pixel_table<double>> double_;
};

}  // namespace fusionllm::inline v0
