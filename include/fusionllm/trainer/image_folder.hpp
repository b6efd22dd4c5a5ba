// SPDX-License-Identifier: Apache-2.0
// A folder of PNG and JPEG pictures, one subfolder a class. Classes and pictures are numbered by the order of their names'
// bytes. Pictures are decoded when they are read, so that a set may be larger than memory. Needs libpng and libjpeg
// (CMake: fusionllm::images).
#pragma once

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "data_file.hpp"
#include "image_folder_jpeg.hpp"
#include "image_folder_png.hpp"

namespace fusionllm::inline v0 {

/// Decodes a PNG or JPEG file, told by its content. Errors: errc::data, naming the file.
inline void read_picture(const std::string& path, picture& to) {
  // Read, not mapped: a file that somebody cuts off meanwhile is an error then, and not the end of the process.
  const std::vector<u8> bytes = detail::read_whole_file(path, errc::data, "picture", largest_picture_file);
  try {
    if (detail::is_png(bytes)) detail::read_png(bytes, path, to);
    else if (detail::is_jpeg(bytes)) detail::read_jpeg(bytes, path, to);
    else fail(errc::data, "picture '", path, "' of ", bytes.size(), " bytes begins neither as PNG nor as JPEG: convert it or remove it");
  } catch (const std::bad_alloc&) {
    fail(errc::resource, "picture '", path, "' does not fit into memory");
  }
}

/// Names in a folder, sorted by their bytes, hidden ones left out. Errors: errc::data.
inline std::vector<std::string> names_in_folder(const std::string& path) {
  struct closer {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  const std::unique_ptr<DIR, closer> folder(::opendir(path.c_str()));
  if (!folder) fail(errc::data, "cannot open folder '", path, "': ", std::strerror(errno), ": check the path");
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* e = ::readdir(folder.get());
    if (!e && errno != 0) fail(errc::data, "cannot read folder '", path, "': ", std::strerror(errno));
    if (!e) break;
    if (e->d_name[0] != '.') names.emplace_back(e->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Those of them that are folders.
inline std::vector<std::string> folders_in_folder(const std::string& path) {
  auto names = names_in_folder(path);
  std::erase_if(names, [&](const std::string& name) {
    struct stat info{};
    return ::stat((path + '/' + name).c_str(), &info) != 0 || !S_ISDIR(info.st_mode);
  });
  return names;
}

class folder_images final : public image_set {
 public:
  /// Which pictures of every class a set takes: all; or, of a folder without a part to test on, all but every tenth; or those.
  enum class part : u8 { all, but_tenths, tenths };

  /// Errors: errc::data: no subfolders, one without pictures, a picture that is no regular file or too large a file.
  explicit folder_images(std::string path, part which = part::all) : path_(std::move(path)) {
    for (const auto& name : folders_in_folder(path_)) add_class(name, which);
    if (classes_.empty())
      fail(errc::data, "folder '", path_, "' has no subfolders, expected one for each class with its pictures, or the "
         "files of MNIST (train-images-idx3-ubyte[.gz], ...) or CIFAR (data_batch_1.bin, ...)");
  }

  i64 count() const override { return i64(files_.size()); }
  i64 classes() const override { return i64(classes_.size()); }
  std::string class_name(i64 c) const override { return classes_[std::size_t(c)]; }
  i64 label(i64 i) const override { return files_[std::size_t(i)].label; }
  picture_view read(i64 i, picture& room) const override {
    read_picture(path_of(i), room);
    return room;
  }
  bool one_size() const override { return false; }
  bool by_class() const override { return true; }
  /// Of names and sizes: pictures are not opened before they are needed.
  u64 digest() const override { return digest_; }
  std::string name_of(i64 i) const override { return "picture '" + path_of(i) + "'"; }
  std::string file_of(i64 i) const override { return path_of(i); }

 private:
  struct file {
    i64 label;
    std::string name;
  };

  std::string path_of(i64 i) const {
    const file& f = files_[std::size_t(i)];
    return path_ + '/' + classes_[std::size_t(f.label)] + '/' + f.name;
  }

  static bool has_picture_name(std::string_view name) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    std::string end(name.substr(dot + 1));
    for (char& c : end) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    return end == "png" || end == "jpg" || end == "jpeg";
  }

  void add_class(const std::string& name, part which) {
    i64 found = 0;
    classes_.push_back(name);
    for (auto& picture_name : names_in_folder(path_ + '/' + name)) {
      if (!has_picture_name(picture_name)) continue;
      const std::string shown = path_ + '/' + name + '/' + picture_name;
      struct stat info{};
      if (::stat(shown.c_str(), &info) != 0) fail(errc::data, "cannot look at picture '", shown, "': ", std::strerror(errno));
      if (!S_ISREG(info.st_mode)) fail(errc::data, "picture '", shown, "' is no regular file");
      if (u64(info.st_size) > largest_picture_file)
        fail(errc::data, "picture '", shown, "' has ", i64(info.st_size), " bytes, expected ", largest_picture_file, " at most");
      const bool tenth = found++ % 10 == 9;
      if (which != part::all && tenth != (which == part::tenths)) continue;
      const std::string text = name + '/' + picture_name + '\n' + std::to_string(info.st_size);
      digest_ = XXH3_64bits_withSeed(text.data(), text.size(), digest_);
      files_.push_back({classes() - 1, std::move(picture_name)});
    }
    if (found == 0) fail(errc::data, "folder '", path_ + '/' + name, "' has no pictures (.png, .jpg, .jpeg): fill it or remove it");
  }

  std::string path_;
  std::vector<std::string> classes_;
  std::vector<file> files_;
  u64 digest_ = 0;
};

}  // namespace fusionllm::inline v0
