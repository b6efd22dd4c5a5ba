// SPDX-License-Identifier: Apache-2.0
// Pictures to train on, from a path: a folder of IDX files (MNIST's names), of CIFAR's binary files, or of class subfolders
// with PNG and JPEG pictures. Link fusionllm::images.
//
//   int main(int argc, char** argv) {
//     return fl::run<fl::trainer<resnet>>(argc, argv, {.make_data = [](const fl::run_config& c) { return fl::images_from(c); }});
//   }
#pragma once

#include "cifar_file.hpp"
#include "config.hpp"
#include "idx_file_images.hpp"
#include "image_data.hpp"
#include "image_folder.hpp"
#include "prefetch.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

/// The plain or the packed file; empty: neither is there.
inline std::string idx_path(const std::string& folder, const char* name) {
  const std::string plain = folder + '/' + name;
  return exists(plain) ? plain : exists(plain + ".gz") ? plain + ".gz" : std::string();
}

inline std::unique_ptr<image_set> open_idx(const std::string& folder, const std::string& part, i64 classes) {
  const std::string images = idx_path(folder, (part + "-images-idx3-ubyte").c_str());
  if (images.empty()) return nullptr;
  const std::string labels = idx_path(folder, (part + "-labels-idx1-ubyte").c_str());
  if (labels.empty()) fail(errc::data, "there is '", images, "', but no '", folder, '/', part, "-labels-idx1-ubyte' or .gz beside it");
  return std::make_unique<idx_images>(images, labels, classes);
}

inline image_splits open_cifar(const std::string& folder, cifar_kind kind) {
  const auto open = [&](std::vector<std::string> names) {
    for (auto& n : names) n = folder + '/' + n;
    return std::make_unique<cifar_images>(names, kind);
  };
  if (kind == cifar_kind::cifar100) return {folder, open({"train.bin"}), open({"test.bin"})};
  return {folder, open({"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}),
          open({"test_batch.bin"})};
}

/// Of train/ and test/ (or val/), whose classes must be the same; or of class subfolders, also those of train/ alone, of
/// which every tenth picture is held out.
inline image_splits open_image_folder(const std::string& folder) {
  using part = folder_images::part;
  const std::string train = folder + "/train";
  for (const char* name : {"/test", "/val"}) {
    if (!exists(train) || !exists(folder + name)) continue;
    auto to_train = std::make_unique<folder_images>(train), to_test = std::make_unique<folder_images>(folder + name);
    for (i64 c = 0; c < (std::max)(to_train->classes(), to_test->classes()); ++c)
      if (c >= to_train->classes() || c >= to_test->classes() || to_train->class_name(c) != to_test->class_name(c))
        fail(errc::data, "folders '", train, "' and '", folder, name, "' have other classes: both need the same subfolders");
    return {folder, std::move(to_train), std::move(to_test)};
  }
  // A class may be called "train" too: it holds pictures, not folders.
  const std::string& whole = exists(train + "/.") && !folders_in_folder(train).empty() ? train : folder;
  auto to_test = std::make_unique<folder_images>(whole, part::tenths);
  image_splits s{whole, std::make_unique<folder_images>(whole, part::but_tenths), nullptr};
  if (to_test->count() > 0) s.test = std::move(to_test);
  return s;
}

}  // namespace detail

/// The pictures at `path`; its content says of which format. `classes` limits labels in IDX files; 0: those that are there.
/// Errors: errc::data, naming the file.
inline image_splits open_images(const std::string& path, i64 classes = 0) {
  if (path.empty()) fail(errc::data, "data is empty: name a folder of pictures with --data");
  if (auto train = detail::open_idx(path, "train", classes)) {
    const i64 known = train->classes();
    return {path, std::move(train), detail::open_idx(path, "t10k", known)};
  }
  for (const char* below : {"", "/cifar-10-batches-bin"})
    if (detail::exists(path + below + "/data_batch_1.bin")) return detail::open_cifar(path + below, cifar_kind::cifar10);
  for (const char* below : {"", "/cifar-100-binary"})
    if (detail::exists(path + below + "/train.bin")) return detail::open_cifar(path + below, cifar_kind::cifar100);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    fail(errc::data, "data '", path, "' is a file, expected a folder: of IDX files (train-images-idx3-ubyte[.gz], ...), of CIFAR's "
         "binary files, or of a subfolder of pictures for each class");
  return detail::open_image_folder(path);
}

/// The pictures that a configuration names (data, batch, seed), read ahead in the background. What `base` has else is kept.
inline std::unique_ptr<data_source> images_from(const run_config& c, image_options base = {}) {
  base.rows = c.batch;
  base.seed = u64(c.seed);
  auto splits = open_images(c.data, base.classes);
  return prefetched(std::make_unique<image_data>(std::move(splits), std::move(base)));
}

}  // namespace fusionllm::inline v0
