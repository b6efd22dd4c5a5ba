// SPDX-License-Identifier: Apache-2.0
// Grey pictures and their labels from a pair of IDX files, as MNIST, Fashion-MNIST and EMNIST are given.
#pragma once

#include <algorithm>

#include "idx_file.hpp"
#include "image_set.hpp"

namespace fusionllm::inline v0 {

class idx_images final : public image_set {
 public:
  /// `classes` 0: as many as the labels show. Errors: errc::data: of either file; other numbers of pictures and labels; a
  /// label outside the classes.
  idx_images(std::string images, std::string labels, i64 classes = 0) : images_(std::move(images)), labels_(std::move(labels)) {
    if (images_.rank() != 3)
      fail(errc::data, "IDX file '", images_.path(), "' has ", images_.rank(), " extents, expected 3: pictures, height, width");
    if (labels_.rank() != 1) fail(errc::data, "IDX file '", labels_.path(), "' has ", labels_.rank(), " extents, expected 1: labels");
    if (images_.extent(0) != labels_.extent(0))
      fail(errc::data, "IDX file '", images_.path(), "' holds ", images_.extent(0), " pictures, '", labels_.path(), "' ",
           labels_.extent(0), " labels: give the files of one set");
    const auto l = labels_.values();
    classes_ = classes > 0 ? classes : i64(*std::max_element(l.begin(), l.end())) + 1;
    const auto outside = std::find_if(l.begin(), l.end(), [&](u8 x) { return x >= classes_; });
    if (outside != l.end())
      fail(errc::data, "label ", outside - l.begin(), " of IDX file '", labels_.path(), "' is ", int(*outside), ", expected 0 to ",
           classes_ - 1);
  }

  i64 count() const override { return images_.extent(0); }
  i64 classes() const override { return classes_; }
  i64 label(i64 i) const override { return labels_.values()[std::size_t(i)]; }
  picture_view read(i64 i, picture&) const override {
    const i64 height = images_.extent(1), width = images_.extent(2);
    return {1, height, width, images_.values().data() + i * height * width};
  }
  bool one_size() const override { return true; }
  u64 digest() const override {
    const auto pixels = images_.values(), labels = labels_.values();
    const u64 all[] = {XXH3_64bits(pixels.data(), pixels.size()), XXH3_64bits(labels.data(), labels.size()), u64(images_.extent(1))};
    return XXH3_64bits(all, sizeof all);
  }
  std::string name_of(i64 i) const override { return "picture " + std::to_string(i) + " of '" + images_.path() + "'"; }

 private:
  idx_file images_, labels_;
  i64 classes_ = 0;
};

}  // namespace fusionllm::inline v0
