// SPDX-License-Identifier: Apache-2.0
// Case C25 for CIFAR's binary files.
#include <fusionllm/trainer/cifar_file.hpp>

#include "catch.hpp"
#include "image_files.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

std::string record(std::initializer_list<int> labels, fl::u64 seed) {
  std::string s;
  for (int l : labels) s += static_cast<char>(l);
  return s + noise(3072, seed);
}

}  // namespace

TEST_CASE("CIFAR-10: pictures over several files in their order") {
  temporary_folder folder;
  const auto a = folder.write("a.bin", record({3}, 1) + record({9}, 2)), b = folder.write("b.bin", record({0}, 3));
  const fl::cifar_images set({a, b}, fl::cifar_kind::cifar10);
  REQUIRE(set.count() == 3);
  CHECK(set.classes() == 10);
  const int labels[] = {3, 9, 0};
  fl::picture room;
  for (int i = 0; i < 3; ++i) {
    CHECK(set.label(i) == labels[i]);
    const auto p = set.read(i, room);
    CHECK((p.channels == 3 && p.height == 32 && p.width == 32));
    CHECK(std::string(p.pixels, p.pixels + 3072) == noise(3072, fl::u64(i + 1)));
    CHECK(p.row(1, 2) == p.pixels + 1024 + 64);
  }
  CHECK(set.name_of(1) == "picture 1 of '" + a + "'");
  CHECK(set.name_of(2) == "picture 0 of '" + b + "'");
  CHECK(set.digest() == fl::cifar_images({a, b}, fl::cifar_kind::cifar10).digest());
  CHECK(set.digest() != fl::cifar_images({b, a}, fl::cifar_kind::cifar10).digest());
}

TEST_CASE("CIFAR-100: the fine label counts") {
  temporary_folder folder;
  const fl::cifar_images set({folder.write("a.bin", record({19, 99}, 1) + record({200, 0}, 2))}, fl::cifar_kind::cifar100);
  CHECK(set.count() == 2);
  CHECK(set.classes() == 100);
  CHECK(set.label(0) == 99);
  CHECK(set.label(1) == 0);
  fl::picture room;
  CHECK(static_cast<char>(set.read(1, room).pixels[0]) == noise(1, 2)[0]);
}

TEST_CASE("damaged CIFAR files") {
  temporary_folder folder;
  const auto open = [&](const std::string& bytes, fl::cifar_kind kind = fl::cifar_kind::cifar10) {
    const auto good = folder.write("good.bin", record({1}, 1)), path = folder.write("bad.bin", bytes);
    auto e = error_of([&] { fl::cifar_images set(kind == fl::cifar_kind::cifar10 ? std::vector{good, path} : std::vector{path}, kind); });
    if (e.code != fl::errc::ok) CHECK(e.says(fl::errc::data, path));
    return e;
  };
  CHECK(open("").says(fl::errc::data, "has 0 bytes, expected a multiple of 3073"));
  CHECK(open("x").says(fl::errc::data, "has 1 bytes"));
  for (std::size_t n : {1u, 1000u, 3072u}) CHECK(open(record({1}, 1) + record({1}, 1).substr(0, n)).says(fl::errc::data, "cut off"));
  CHECK(open(record({9}, 1) + record({10}, 1)).says(fl::errc::data, "label of picture 1", "is 10 (at byte 3073), expected 0 to 9"));
  CHECK(open(record({255}, 1)).says(fl::errc::data, "is 255"));
  CHECK(open(record({1}, 1), fl::cifar_kind::cifar100).says(fl::errc::data, "multiple of 3074 (2 labels"));
  CHECK(open(record({0, 100}, 1), fl::cifar_kind::cifar100).says(fl::errc::data, "is 100 (at byte 1), expected 0 to 99"));
  CHECK(error_of([&] { fl::cifar_images({folder / "absent.bin"}, fl::cifar_kind::cifar10); })
            .says(fl::errc::data, folder / "absent.bin", "No such file"));
  CHECK(error_of([&] { fl::cifar_images({}, fl::cifar_kind::cifar10); }).says(fl::errc::data, "no CIFAR file"));
  each_damage(record({1}, 1) + record({2}, 2), 100, [&](const std::string& bytes) {
    const auto code = open(bytes).code;
    CHECK((code == fl::errc::ok || code == fl::errc::data));
  });
}
