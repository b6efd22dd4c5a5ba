// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 in their binary form (Krizhevsky, "Learning multiple layers of features from tiny images", 2009):
// records of one label, or a coarse and a fine one, and 3 x 32 x 32 bytes. Files are mapped.
#pragma once

#include "image_set.hpp"
#include "mapped_file.hpp"

namespace fusionllm::inline v0 {

enum class cifar_kind : u8 { cifar10, cifar100 };

class cifar_images final : public image_set {
 public:
  /// Errors: errc::data: a file is missing, empty, not whole records, or has a label outside the classes.
  cifar_images(const std::vector<std::string>& paths, cifar_kind kind) : kind_(kind) {
    if (paths.empty()) fail(errc::data, "no CIFAR file is named");
    for (const auto& path : paths) {
      parts_.push_back({path, mapped_file(path, errc::data, "CIFAR file"), count_});
      check(parts_.back());
      count_ += records_of(parts_.back());
    }
  }

  i64 count() const override { return count_; }
  i64 classes() const override { return kind_ == cifar_kind::cifar10 ? 10 : 100; }
  i64 label(i64 i) const override { return record(i)[labels() - 1]; }
  picture_view read(i64 i, picture&) const override { return {3, side, side, record(i) + labels()}; }
  bool one_size() const override { return true; }
  u64 digest() const override {
    std::vector<u64> all{u64(kind_)};
    for (const part& p : parts_) all.push_back(XXH3_64bits(p.file.bytes().data(), p.file.size()));
    return XXH3_64bits(all.data(), all.size() * sizeof(u64));
  }
  std::string name_of(i64 i) const override {
    const part& p = part_of(i);
    return "picture " + std::to_string(i - p.first) + " of '" + p.path + "'";
  }

 private:
  static constexpr i64 side = 32, pixels = 3 * side * side;
  struct part {
    std::string path;
    mapped_file file;
    i64 first = 0;  ///< number of its first picture
  };

  i64 labels() const { return kind_ == cifar_kind::cifar10 ? 1 : 2; }
  i64 record_bytes() const { return labels() + pixels; }
  i64 records_of(const part& p) const { return i64(p.file.size()) / record_bytes(); }
  const part& part_of(i64 i) const {
    std::size_t at = parts_.size() - 1;
    while (parts_[at].first > i) --at;
    return parts_[at];
  }
  const u8* record(i64 i) const {
    const part& p = part_of(i);
    return reinterpret_cast<const u8*>(p.file.bytes().data()) + (i - p.first) * record_bytes();
  }

  void check(const part& p) const {
    if (p.file.size() == 0 || p.file.size() % std::size_t(record_bytes()) != 0)
      fail(errc::data, "CIFAR file '", p.path, "' has ", p.file.size(), " bytes, expected a multiple of ", record_bytes(), " (",
           labels(), labels() == 1 ? " label" : " labels", " and 3 x 32 x 32 pixels): it is cut off, or of another format");
    const u8* bytes = reinterpret_cast<const u8*>(p.file.bytes().data());
    for (i64 i = 0; i < records_of(p); ++i) {
      const int found = bytes[i * record_bytes() + labels() - 1];
      if (found >= classes())
        fail(errc::data, "label of picture ", i, " of CIFAR file '", p.path, "' is ", found, " (at byte ",
             i * record_bytes() + labels() - 1, "), expected 0 to ", classes() - 1);
    }
  }

  cifar_kind kind_;
  std::vector<part> parts_;
  i64 count_ = 0;
};

}  // namespace fusionllm::inline v0
