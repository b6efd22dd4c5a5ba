// SPDX-License-Identifier: Apache-2.0
// Case C25 for IDX files: every damage is an error that names the file, before memory is taken for what a header claims.
#include <fusionllm/trainer/idx_file_images.hpp>

#include <sys/resource.h>

#include "catch.hpp"
#include "image_files.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

// Largest resident memory of this process so far, in MiB.
long resident_peak() {
  rusage r{};
  ::getrusage(RUSAGE_SELF, &r);
  return r.ru_maxrss / 1024;
}

caught open(const temporary_folder& folder, const std::string& bytes) {
  const auto path = folder.write("file.idx", bytes);
  const auto e = error_of([&] { fl::idx_file f(path); });
  if (e.code != fl::errc::ok) CHECK(e.says(e.code, path));
  return e;
}

}  // namespace

TEST_CASE("a plain and a packed IDX file hold the same") {
  temporary_folder folder;
  const std::string values = noise(2 * 3 * 5, 1), file = idx({2, 3, 5}, values);
  for (const auto& bytes : {file, gzip(file), gzip(file.substr(0, 11)) + gzip(file.substr(11))}) {
    const fl::idx_file f(folder.write("file.idx", bytes));
    REQUIRE(f.rank() == 3);
    CHECK(f.extent(0) == 2);
    CHECK(f.extent(1) == 3);
    CHECK(f.extent(2) == 5);
    CHECK(std::string(f.values().begin(), f.values().end()) == values);
  }
  const fl::idx_file four(folder.write("four.idx", idx({1, 2, 1, 3}, "abcdef")));
  CHECK(four.rank() == 4);
  CHECK(four.extent(3) == 3);
  fl::idx_file moved(fl::idx_file(folder.write("moved.idx", gzip(file))));
  CHECK(std::string(moved.values().begin(), moved.values().end()) == values);
}

TEST_CASE("damaged headers of plain and of packed IDX files") {
  temporary_folder folder;
  CHECK(open(folder, "").says(fl::errc::data, "has 0 bytes", "cut off"));
  const std::string file = idx({2, 3}, "abcdef");
  for (std::size_t n = 0; n < 12; ++n) {
    INFO(n);
    CHECK(open(folder, file.substr(0, n)).says(fl::errc::data, "has " + std::to_string(n) + " bytes, expected a header", "cut off"));
    CHECK(open(folder, gzip(file.substr(0, n))).says(fl::errc::data, "has " + std::to_string(n) + " bytes, expected a header"));
  }
  for (const bool packed : {false, true}) {
    const auto refused = [&](const std::string& bytes, const char* why) {
      const auto e = open(folder, packed ? gzip(bytes) : bytes);
      INFO(e.text << " / " << why);
      CHECK(e.says(fl::errc::data, why));
    };
    refused("PK" + file.substr(2), "does not begin with two zeros, found 80 and 75");
    refused(std::string("\0\0\x0D\1\0\0\0\1\0\0\0\0", 12), "elements of type 13, expected 8");
    refused(std::string("\0\0\x08\0\0\0\0\1", 8), "has 0 extents, expected 1 to 4");
    refused(std::string("\0\0\x08\x05", 4) + std::string(40, '\1'), "has 5 extents");
    refused(std::string("\0\0\x08\xFF", 4) + std::string(40, '\1'), "has 255 extents");
    refused(idx({2, 0, 3}, ""), "extent of 0 (number 1)");
    refused(idx({0xFFFFFFFFu, 0xFFFFFFFFu, 2}, "x"), "multiply to more than 2^62");
    refused(idx({0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu}, "x"), "multiply to more than 2^62");
  }
}

TEST_CASE("extents that are not those of the content") {
  temporary_folder folder;
  CHECK(open(folder, idx({2, 3}, "abcde")).says(fl::errc::data, "holds 5 elements", "multiply to 6", "cut off"));
  CHECK(open(folder, idx({2, 3}, "abcdefg")).says(fl::errc::data, "holds 7 elements", "bytes behind its end"));
  CHECK(open(folder, gzip(idx({2, 3}, "abcde"))).says(fl::errc::data, "holds 5 elements", "multiply to 6", "cut off"));
  CHECK(open(folder, gzip(idx({2, 3}, "abcdefg"))).says(fl::errc::data, "holds more than its dimensions say"));
}

TEST_CASE("a header cannot make a packed file take memory that it does not fill") {
  temporary_folder folder;
  const long before = resident_peak();
  CHECK(open(folder, gzip(idx({60000, 28000, 2800}, "x"))).says(fl::errc::data, "holds 4704000000000 elements", "packed bytes cannot"));
  CHECK(open(folder, idx({60000, 28000, 2800}, "x")).says(fl::errc::data, "holds 1 elements"));
  // 8 MiB of zeros in 8 KiB, whose header knows of six of them.
  CHECK(open(folder, gzip(idx({2, 3}, std::string(8 << 20, '\0')))).says(fl::errc::data, "holds more than its dimensions say"));
  // A bomb whose header agrees: refused by the bound on what is unpacked.
  std::string big = gzip(idx({5000, 1000, 1000}, "x"));
  big.resize(6 << 20, 'x');
  CHECK(open(folder, big).says(fl::errc::data, "unpacks to 5000000000 bytes", "gunzip"));
  CHECK(resident_peak() - before < 64);
}

TEST_CASE("damaged gzip streams") {
  temporary_folder folder;
  const std::string packed = gzip(idx({40, 50}, noise(2000, 3)));
  for (std::size_t n = 2; n < packed.size(); n += 7) {
    const auto e = open(folder, packed.substr(0, n));
    INFO(n << ": " << e.text);
    CHECK(e.says(fl::errc::data, "is cut off"));
  }
  CHECK(open(folder, packed + "trailing").says(fl::errc::data, "has 8 bytes behind its end"));
  CHECK(open(folder, packed + '\0').says(fl::errc::data, "has 1 bytes behind its end"));
  CHECK(open(folder, packed + gzip("more")).says(fl::errc::data, "holds more than its dimensions say"));
  CHECK(open(folder, packed + gzip("")).code == fl::errc::ok);
  CHECK(open(folder, packed + "\x1F\x8B garbage").says(fl::errc::data, "is damaged near byte"));
  CHECK(open(folder, "\x1F\x8B" + noise(300, 9)).says(fl::errc::data, "is damaged near byte"));
  std::string checksum = packed;
  checksum[checksum.size() - 6] ^= 1;
  CHECK(open(folder, checksum).says(fl::errc::data, "is damaged near byte", "data check"));
}

TEST_CASE("random damage to IDX files never does more than raise an error of the data") {
  temporary_folder folder;
  const std::string file = idx({10, 4, 5}, noise(200, 4));
  for (const auto& whole : {file, gzip(file)})
    each_damage(whole, 150, [&](const std::string& bytes) {
      const auto e = open(folder, bytes);
      CHECK((e.code == fl::errc::ok || e.code == fl::errc::data));
    });
  for (fl::u64 seed = 0; seed < 200; ++seed) CHECK(open(folder, noise(seed, seed)).code == fl::errc::data);
}

TEST_CASE("no IDX file where one is expected is named") {
  temporary_folder folder;
  CHECK(error_of([&] { fl::idx_file f(folder / "absent"); }).says(fl::errc::data, folder / "absent", "No such file"));
  CHECK(error_of([&] { fl::idx_file f(folder.path()); }).says(fl::errc::data, folder.path(), "is a directory"));
}

TEST_CASE("pictures and labels of IDX files") {
  temporary_folder folder;
  const std::string pixels = noise(3 * 2 * 4, 6);
  const auto images = folder.write("images", idx({3, 2, 4}, pixels)),
             labels = folder.write("labels", gzip(idx({3}, std::string("\5\0\7", 3))));
  const fl::idx_images set(images, labels);
  CHECK(set.count() == 3);
  CHECK(set.classes() == 8);
  CHECK(set.label(0) == 5);
  CHECK(set.label(2) == 7);
  fl::picture room;
  const auto p = set.read(2, room);
  CHECK((p.channels == 1 && p.height == 2 && p.width == 4));
  CHECK(std::string(p.pixels, p.pixels + 8) == pixels.substr(16));
  CHECK(set.name_of(2) == "picture 2 of '" + images + "'");
  CHECK(fl::idx_images(images, labels, 8).classes() == 8);
  CHECK(error_of([&] { fl::idx_images(images, labels, 7); })
            .says(fl::errc::data, "label 2 of IDX file '" + labels + "' is 7, expected 0 to 6"));
  CHECK(error_of([&] { fl::idx_images(images, folder.write("two", idx({2}, "\1\1"))); })
            .says(fl::errc::data, images, "holds 3 pictures", "2 labels"));
  CHECK(error_of([&] { fl::idx_images(labels, labels); }).says(fl::errc::data, labels, "has 1 extents, expected 3"));
  CHECK(error_of([&] { fl::idx_images(images, images); }).says(fl::errc::data, images, "has 3 extents, expected 1"));

  const auto digest = [&](const std::string& name, std::initializer_list<fl::u32> dims, const std::string& bytes,
                          const std::string& l) {
    return fl::idx_images(folder.write(name, idx(dims, bytes)), folder.write(name + "l", idx({3}, l))).digest();
  };
  const auto d = digest("a", {3, 2, 4}, pixels, "\1\2\3");
  CHECK(d == digest("b", {3, 2, 4}, pixels, "\1\2\3"));
  CHECK(d != digest("c", {3, 4, 2}, pixels, "\1\2\3"));
  CHECK(d != digest("d", {3, 2, 4}, pixels, "\1\2\4"));
  CHECK(d != digest("e", {3, 2, 4}, noise(24, 7), "\1\2\3"));
}
