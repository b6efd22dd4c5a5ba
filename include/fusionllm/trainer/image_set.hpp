// SPDX-License-Identifier: Apache-2.0
// Labelled pictures by number, as files hold them: bytes, before anything is scaled, cut or normalized.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// A picture: planes of bytes, (channels, height, width); 1 channel is grey, 3 are red, green and blue.
struct picture {
  i64 channels = 0, height = 0, width = 0;
  std::vector<u8> pixels{};
};

/// What a picture has; the memory is another's.
struct picture_view {
  i64 channels = 0, height = 0, width = 0;
  const u8* pixels = nullptr;

  picture_view() = default;
  picture_view(i64 c, i64 h, i64 w, const u8* p) : channels(c), height(h), width(w), pixels(p) {}
  picture_view(const picture& p) : channels(p.channels), height(p.height), width(p.width), pixels(p.pixels.data()) {}
  const u8* row(i64 channel, i64 y) const { return pixels + (channel * height + y) * width; }
};

class image_set {
 public:
  virtual ~image_set() = default;

  virtual i64 count() const = 0;
  virtual i64 classes() const = 0;
  /// In [0, classes()), for i < count().
  virtual i64 label(i64 i) const = 0;
  /// Picture i, in place where it lies in memory, else in `room`, which the caller owns. Safe to call from several threads.
  /// Errors: errc::data, naming the file.
  virtual picture_view read(i64 i, picture& room) const = 0;
  /// Whether all pictures are of one size, which is kept: a larger input is filled up around them. Others are scaled.
  virtual bool one_size() const = 0;
  /// Whether the pictures of a class lie together, so that the first ones are no sample of all.
  virtual bool by_class() const { return false; }
  /// Of the content, as far as it can be told without reading files that may be larger than memory.
  virtual u64 digest() const = 0;
  /// Of one picture, for an error: "picture 7 of 'path'".
  virtual std::string name_of(i64 i) const = 0;
  /// What people call class c; empty: no name is known.
  virtual std::string class_name(i64 c) const { return (void)c, std::string(); }
  /// The path of a picture that is a file of its own; empty: it is not.
  virtual std::string file_of(i64 i) const { return (void)i, std::string(); }
};

/// What a folder of data holds.
struct image_splits {
  std::string path{};
  std::unique_ptr<image_set> train{};
  std::unique_ptr<image_set> test{};  ///< null: none
};

}  // namespace fusionllm::inline v0
