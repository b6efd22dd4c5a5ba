// SPDX-License-Identifier: Apache-2.0
// From a path to batches: the format is told by what is there, and what is missing is named.
#include <fusionllm/trainer/images.hpp>

#include <filesystem>

#include "catch.hpp"
#include "image_files.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

void make_folders(const temporary_folder& folder, std::initializer_list<const char*> names) {
  for (const char* n : names) std::filesystem::create_directories(folder / n);
}
std::string grey(int v) { return png(4, 4, PNG_FORMAT_GRAY, std::string(16, static_cast<char>(v))); }
std::string cifar10(int label, fl::u64 seed) { return static_cast<char>(label) + noise(3072, seed); }

}  // namespace

TEST_CASE("IDX files, plain and packed, with and without a part to test on") {
  temporary_folder folder;
  folder.write("train-images-idx3-ubyte", idx({3, 2, 2}, noise(12, 1)));
  CHECK(error_of([&] {
          fl::open_images(folder.path());
        }).says(fl::errc::data, "train-images-idx3-ubyte'", "no '", "train-labels-idx1-ubyte' or .gz"));
  folder.write("train-labels-idx1-ubyte.gz", gzip(idx({3}, "\1\2\3")));
  auto s = fl::open_images(folder.path());
  CHECK(s.train->count() == 3);
  CHECK(s.train->classes() == 4);
  CHECK(!s.test);
  folder.write("t10k-images-idx3-ubyte.gz", gzip(idx({2, 2, 2}, noise(8, 2))));
  folder.write("t10k-labels-idx1-ubyte", idx({2}, "\1\1"));
  s = fl::open_images(folder.path());
  REQUIRE(s.test);
  CHECK(s.test->count() == 2);
  CHECK(s.test->classes() == 4);
  CHECK(fl::open_images(folder.path(), 10).train->classes() == 10);
  CHECK(error_of([&] { fl::open_images(folder.path(), 3); }).says(fl::errc::data, "label 2", "is 3, expected 0 to 2"));
  folder.write("t10k-labels-idx1-ubyte", idx({2}, "\1\4"));
  CHECK(error_of([&] { fl::open_images(folder.path()); }).says(fl::errc::data, "label 1", "t10k-labels", "is 4, expected 0 to 3"));
}

TEST_CASE("CIFAR in its own folder and in the one above") {
  temporary_folder folder;
  make_folders(folder, {"cifar-10-batches-bin", "other/cifar-100-binary"});
  for (int b = 1; b <= 5; ++b) {
    folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(b) + ".bin", cifar10(b, fl::u64(b)));
    if (b == 1) CHECK(error_of([&] { fl::open_images(folder.path()); }).says(fl::errc::data, "data_batch_2.bin", "No such file"));
  }
  CHECK(error_of([&] { fl::open_images(folder.path()); }).says(fl::errc::data, "test_batch.bin", "No such file"));
  folder.write("cifar-10-batches-bin/test_batch.bin", cifar10(0, 9) + cifar10(1, 10));
  for (const auto& path : {folder.path(), folder / "cifar-10-batches-bin"}) {
    const auto s = fl::open_images(path);
    CHECK(s.train->count() == 5);
    CHECK(s.train->label(4) == 5);
    CHECK(s.test->count() == 2);
  }
  folder.write("other/cifar-100-binary/train.bin", '\1' + cifar10(77, 1));
  folder.write("other/cifar-100-binary/test.bin", '\1' + cifar10(99, 1));
  const auto s = fl::open_images(folder / "other");
  CHECK(s.train->classes() == 100);
  CHECK(s.train->label(0) == 77);
  CHECK(s.test->label(0) == 99);
}

TEST_CASE("folders of pictures, with and without a part to test on") {
  temporary_folder folder;
  make_folders(folder, {"whole/a", "whole/b", "split/train/a", "split/train/b", "split/val/a"});
  for (int i = 0; i < 12; ++i) folder.write("whole/a/" + std::to_string(100 + i) + ".png", grey(i));
  folder.write("whole/b/x.png", grey(50));
  auto s = fl::open_images(folder / "whole");
  CHECK(s.train->count() == 12);
  REQUIRE(s.test);
  CHECK(s.test->count() == 1);
  fl::picture room;
  CHECK(int(s.test->read(0, room).pixels[0]) == 9);
  folder.write("split/train/a/1.png", grey(1)), folder.write("split/train/b/2.png", grey(2)),
      folder.write("split/val/a/3.png", grey(3));
  CHECK(error_of([&] { fl::open_images(folder / "split"); }).says(fl::errc::data, "split/train' and", "split/val' have other classes"));
  make_folders(folder, {"split/val/b"});
  folder.write("split/val/b/4.png", grey(4));
  s = fl::open_images(folder / "split");
  CHECK(s.train->count() == 2);
  CHECK(s.test->label(1) == 1);
}

TEST_CASE("a folder train/ alone is split like any other, one with pictures is a class") {
  temporary_folder folder;
  make_folders(folder, {"alone/train/a", "alone/train/b", "vehicles/car", "vehicles/train"});
  for (int i = 0; i < 12; ++i)
    for (const char* name : {"alone/train/a/", "alone/train/b/", "vehicles/car/", "vehicles/train/"})
      folder.write(name + std::to_string(100 + i) + ".png", grey(i));
  for (const char* name : {"alone", "vehicles"}) {
    const auto s = fl::open_images(folder / name);
    CHECK(s.train->classes() == 2);
    CHECK(s.train->count() == 22);
    REQUIRE(s.test);
    CHECK(s.test->count() == 2);
  }
  CHECK(fl::open_images(folder / "alone").path == folder / "alone/train");
}

TEST_CASE("paths that hold no pictures say what was expected") {
  temporary_folder folder;
  CHECK(error_of([&] { fl::open_images(""); }).says(fl::errc::data, "data is empty", "--data"));
  CHECK(error_of([&] { fl::open_images(folder / "absent"); }).says(fl::errc::data, folder / "absent", "No such file"));
  CHECK(error_of([&] {
          fl::open_images(folder.write("file", "x"));
        }).says(fl::errc::data, "is a file, expected a folder", "train-images-idx3-ubyte"));
  CHECK(error_of([&] { fl::open_images(folder.path()); }).says(fl::errc::data, folder.path(), "no subfolders", "MNIST", "CIFAR"));
}

TEST_CASE("a folder's pictures of all sizes fill the model's input, and a damaged one stops its step by name") {
  temporary_folder folder;
  make_folders(folder, {"a", "b"});
  folder.write("a/flat.png", png(9, 17, PNG_FORMAT_RGB, std::string(9 * 17 * 3, '\x40')));
  folder.write("b/grey.jpg", jpeg(30, 20, 1, std::string(600, '\x40')));
  fl::run_config c;
  c.data = folder.path(), c.batch = 2, c.seed = 3;
  const auto d = fl::images_from(c, {.augment = {.padding = 0}, .statistics = {{0}, {1}}});
  std::vector<double> x(2 * 3 * 6 * 6);
  const fl::output_span images[] = {{"images", std::span(x), {2, 3, 6, 6}}};
  for (fl::u64 step = 0; step < 4; ++step) {
    d->fill(step, 0, 2, images);
    for (double v : x) REQUIRE(std::abs(v - 64 / 255.0) < 0.01);
  }
  const auto bad = folder / "b/grey.jpg";  // replaced at once: it may be read ahead at any time
  std::filesystem::rename(folder.write("spare", "\xFF\xD8\xFF\xE0 this is no picture"), bad);
  CHECK(error_of([&] { for (fl::u64 step = 4; step < 9; ++step) d->fill(step, 0, 2, images); }).says(fl::errc::data, bad, "libjpeg"));
}

TEST_CASE("images_from: batch and seed are the configuration's, steps in order are those of a source that is not read ahead") {
  temporary_folder folder;
  folder.write("train-images-idx3-ubyte", idx({50, 28, 28}, noise(50 * 784, 1)));
  folder.write("train-labels-idx1-ubyte", idx({50}, noise(50, 2)));
  fl::run_config c;
  c.data = folder.path(), c.batch = 7, c.seed = 9;
  const auto ahead = fl::images_from(c);
  const fl::image_data direct(fl::open_images(folder.path()), {.rows = 7, .seed = 9});
  CHECK(ahead->batch() == 7);
  CHECK(ahead->digest() == direct.digest());
  CHECK(ahead->describe().find("50 pictures of") != std::string::npos);
  std::vector<float> x(7 * 3 * 32 * 32), y(x.size());
  std::vector<std::int32_t> l(7), m(7);
  const fl::output_span to_x[] = {{"images", std::span(x), {7, 3, 32, 32}}, {"labels", std::span(l), {7}}};
  const fl::output_span to_y[] = {{"images", std::span(y), {7, 3, 32, 32}}, {"labels", std::span(m), {7}}};
  for (fl::u64 step = 100; step < 130; ++step) {
    ahead->fill(step, 0, 7, to_x);
    direct.fill(step, 0, 7, to_y);
    REQUIRE(x == y);
    REQUIRE(l == m);
  }
}

TEST_CASE("Fashion-MNIST, where the set-up script has laid it") {
  const std::string path = environment("FUSIONLLM_DATA") + "/fashion-mnist";
  if (!fl::detail::exists(path)) return;
  const fl::image_data d(fl::open_images(path, 10), {.rows = 128});
  CHECK(d.train_count() == 60000);
  CHECK(d.test_count() == 10000);
  CHECK(d.validation_batches() == 79);
  CHECK(d.validation_rows(78) == 16);
  REQUIRE(d.options().statistics.mean.size() == 1);
  CHECK(d.options().statistics.mean[0] == Approx(0.2860).margin(1e-4));  // the values that its users quote
  CHECK(d.options().statistics.deviation[0] == Approx(0.3530).margin(1e-4));
}
