// SPDX-License-Identifier: Apache-2.0
// Case C25 for folders of pictures: exact pixels of every kind of PNG and JPEG, and every damage an error that names the file.
#include <fusionllm/trainer/image_folder.hpp>

#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "catch.hpp"
#include "image_files.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using namespace fusionllm_test;

namespace {

fl::picture read(const std::string& path) {
  fl::picture p;
  fl::read_picture(path, p);
  return p;
}

// Planes of mixed pixels.
std::vector<fl::u8> planes(const std::string& mixed, std::size_t stride, std::size_t channels) {
  std::vector<fl::u8> out;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = c; i < mixed.size(); i += stride) out.push_back(static_cast<unsigned char>(mixed[i]));
  return out;
}

// A PNG chunk with its checksum.
std::string chunk(const std::string& type, const std::string& data) {
  const std::string all = type + data;
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(all.data()), uInt(all.size()));
  return big_endian({fl::u32(data.size())}) + all + big_endian({fl::u32(crc)});
}
std::string zlib_packed(const std::string& bytes) {
  std::string out(::compressBound(uLong(bytes.size())), '\0');
  uLongf n = uLongf(out.size());
  if (::compress(reinterpret_cast<Bytef*>(out.data()), &n, reinterpret_cast<const Bytef*>(bytes.data()), uLong(bytes.size()))
      != Z_OK)
    std::abort();
  out.resize(n);
  return out;
}
const std::string signature("\x89PNG\r\n\x1A\n", 8);
std::string png_header(fl::u32 width, fl::u32 height, char depth, char colour, char interlace = 0) {
  return signature + chunk("IHDR", big_endian({width, height}) + std::string{depth, colour, 0, 0, interlace});
}

// A JPEG whose frame header claims another size.
std::string with_jpeg_size(std::string bytes, int height, int width) {
  for (std::size_t i = 2; i + 9 < bytes.size();) {
    if (bytes[i + 1] == '\xC0' || bytes[i + 1] == '\xC2') {
      bytes[i + 5] = static_cast<char>(height >> 8), bytes[i + 6] = static_cast<char>(height);
      bytes[i + 7] = static_cast<char>(width >> 8), bytes[i + 8] = static_cast<char>(width);
      return bytes;
    }
    i += 2 + std::size_t(static_cast<unsigned char>(bytes[i + 2])) * 256 + static_cast<unsigned char>(bytes[i + 3]);
  }
  std::abort();
}

}  // namespace

TEST_CASE("PNG: grey and colour, with and without alpha, exactly") {
  temporary_folder folder;
  for (auto [format, stride, channels] :
       {std::tuple{PNG_FORMAT_GRAY, 1u, 1u}, {PNG_FORMAT_GA, 2u, 1u}, {PNG_FORMAT_RGB, 3u, 3u}, {PNG_FORMAT_RGBA, 4u, 3u}}) {
    const std::string pixels = noise(7 * 5 * stride, stride);
    const auto p = read(folder.write("a.png", png(7, 5, fl::u32(format), pixels)));
    CHECK((p.channels == fl::i64(channels) && p.height == 7 && p.width == 5));
    CHECK(p.pixels == planes(pixels, stride, channels));
  }
}

TEST_CASE("PNG: palette, one bit, sixteen bits, interlaced") {
  temporary_folder folder;
  const std::string end = chunk("IEND", "");
  const auto palette = read(folder.write("p.png", png_header(2, 1, 8, 3) + chunk("PLTE", std::string("\x01\x02\x03\xF0\xE0\xD0", 6)) +
                                                      chunk("IDAT", zlib_packed(std::string("\0\1\0", 3))) + end));
  CHECK(palette.channels == 3);
  CHECK(palette.pixels == std::vector<fl::u8>{0xF0, 1, 0xE0, 2, 0xD0, 3});
  const auto bits = read(folder.write("b.png", png_header(3, 1, 1, 0) + chunk("IDAT", zlib_packed(std::string("\0\xA0", 2))) + end));
  CHECK(bits.pixels == std::vector<fl::u8>{255, 0, 255});
  const auto wide =
      read(folder.write("w.png", png_header(2, 1, 16, 0) + chunk("IDAT", zlib_packed(std::string("\0\x80\x80\x20\x20", 5))) + end));
  CHECK(wide.pixels == std::vector<fl::u8>{0x80, 0x20});
  // Adam7 of 2 x 2: passes of one pixel, one pixel, one row of two.
  const auto laced = read(folder.write(
      "l.png", png_header(2, 2, 8, 0, 1) + chunk("IDAT", zlib_packed(std::string("\0\x0A\0\x0B\0\x0C\x0D", 7))) + end));
  CHECK(laced.pixels == std::vector<fl::u8>{10, 11, 12, 13});
}

TEST_CASE("JPEG: grey and colour, baseline and progressive, near the pixels") {
  temporary_folder folder;
  for (const int channels : {1, 3})
    for (const bool progressive : {false, true}) {
      std::string pixels;
      for (int i = 0; i < 24 * 40; ++i)
        for (int c = 0; c < channels; ++c) pixels += static_cast<char>(60 + 2 * (i % 40) + 10 * c);
      const auto p = read(folder.write("a.jpg", jpeg(24, 40, channels, pixels, progressive)));
      REQUIRE((p.channels == channels && p.height == 24 && p.width == 40));
      const auto expected = planes(pixels, std::size_t(channels), std::size_t(channels));
      REQUIRE(p.pixels.size() == expected.size());
      int worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) worst = (std::max)(worst, std::abs(int(p.pixels[i]) - int(expected[i])));
      CHECK(worst <= 3);
    }
}

TEST_CASE("cut pictures are errors that name the file, at every length") {
  temporary_folder folder;
  for (const auto& whole :
       {png(9, 8, PNG_FORMAT_RGB, noise(216, 1)), jpeg(9, 8, 3, noise(216, 1)), jpeg(9, 8, 1, noise(72, 1), true)}) {
    CHECK(error_of([&] { read(folder.write("whole", whole)); }).text == "");
    for (std::size_t n = 0; n < whole.size() - 2; ++n) {  // a JPEG is whole without its last two bytes, which only end it
      const auto path = folder.write("cut", whole.substr(0, n));
      const auto e = error_of([&] { read(path); });
      INFO(n << " of " << whole.size() << ": " << e.text);
      REQUIRE(e.says(fl::errc::data, path));
    }
  }
}

TEST_CASE("absurd sizes are refused before memory is taken") {
  temporary_folder folder;
  const std::string data = chunk("IDAT", zlib_packed("")) + chunk("IEND", "");
  for (auto [w, h] : {std::pair{0x7FFFFFFFu, 0x7FFFFFFFu},
                      {0xFFFFFFFFu, 1u},
                      {0u, 5u},
                      {5u, 0u},
                      {32769u, 1u},
                      {32768u, 32768u},
                      {8193u, 8192u}}) {
    const auto path = folder.write("big.png", png_header(w, h, 8, 2) + data);
    CHECK(error_of([&] {
            read(path);
          }).says(fl::errc::data, path, "says that it has " + std::to_string(h) + " x " + std::to_string(w)));
  }
  const std::string small = jpeg(8, 8, 3, noise(192, 1)), laced = jpeg(8, 8, 3, noise(192, 1), true);
  for (const auto& bytes : {small, laced}) {
    const auto path = folder.write("big.jpg", with_jpeg_size(bytes, 65000, 65000));
    CHECK(error_of([&] { read(path); }).says(fl::errc::data, path, "says that it has 65000 x 65000"));
    const auto false_size = folder.write("false.jpg", with_jpeg_size(bytes, 300, 300));
    CHECK(error_of([&] { read(false_size); }).says(fl::errc::data, false_size, "damaged or cut off"));
    const auto too_few = folder.write("few.jpg", with_jpeg_size(bytes, 8000, 8000));
    CHECK(error_of([&] { read(too_few); }).says(fl::errc::data, too_few, "8000 x 8000 pixels, which its", "bytes cannot hold"));
  }
  const auto too_few = folder.write("few.png", png_header(8000, 8000, 8, 2) + data);
  CHECK(error_of([&] { read(too_few); }).says(fl::errc::data, too_few, "8000 x 8000 pixels, which its", "bytes cannot hold"));
  // As many pixels as zeros can be packed to are read.
  const auto zeros = folder.write("zeros.png", png(3000, 3000, PNG_FORMAT_GRAY, std::string(9000000, '\0')));
  CHECK(std::filesystem::file_size(zeros) < 20000);
  CHECK(read(zeros).pixels == std::vector<fl::u8>(9000000));
  const auto flat = folder.write("flat.jpg", jpeg(2000, 2000, 1, std::string(4000000, '\x80'), true));
  CHECK(std::filesystem::file_size(flat) < 4000000 / 64);
  CHECK(read(flat).pixels == std::vector<fl::u8>(4000000, 128));
  const auto late = folder.write("late.png", signature + chunk("tEXt", "a") + png_header(2, 2, 8, 2).substr(8) + data);
  CHECK(error_of([&] { read(late); }).says(fl::errc::data, late, "no PNG header"));
  const auto endless = folder.write("endless.png", png_header(2, 2, 8, 2) + big_endian({0xFFFFFFF0u}) + "IDATxxxx");
  CHECK(error_of([&] { read(endless); }).says(fl::errc::data, endless, "cut off"));
  const auto bare = folder.write("bare.png", png_header(2, 2, 8, 2) + chunk("IEND", ""));
  CHECK(error_of([&] { read(bare); }).says(fl::errc::data, bare, "libpng"));
  const auto sparse = folder / "sparse.png";
  folder.write("sparse.png", "");
  std::filesystem::resize_file(sparse, fl::largest_picture_file + 1);
  CHECK(error_of([&] { read(sparse); }).says(fl::errc::data, sparse, "bytes, expected"));
}

TEST_CASE("other formats and colours are named") {
  temporary_folder folder;
  for (const auto& bytes : {std::string(), std::string("x"), std::string("GIF89a"), noise(500, 3)}) {
    const auto path = folder.write("a.png", bytes);
    CHECK(error_of([&] { read(path); }).says(fl::errc::data, path, "neither as PNG nor as JPEG"));
  }
  const auto ink = folder.write("ink.jpg", jpeg(8, 8, 4, noise(256, 1)));
  CHECK(error_of([&] { read(ink); }).says(fl::errc::data, ink, "four colours of print"));
  CHECK(error_of([&] { read(folder / "absent.png"); }).says(fl::errc::data, folder / "absent.png", "No such file"));
}

TEST_CASE("random damage never does more than raise an error of the data") {
  temporary_folder folder;
  for (const auto& whole : {png(20, 15, PNG_FORMAT_RGB, noise(900, 1)), png(20, 15, PNG_FORMAT_GRAY, std::string(300, 'a')),
                            jpeg(20, 15, 3, noise(900, 1)), jpeg(20, 15, 3, noise(900, 1), true)}) {
    int errors = 0;
    each_damage(whole, 200, [&](const std::string& bytes) {
      const auto path = folder.write("damaged", bytes);
      const auto e = error_of([&] { read(path); });
      CHECK((e.code == fl::errc::ok || e.says(fl::errc::data, path)));
      errors += e.code != fl::errc::ok;
    });
    CHECK(errors > 200);
  }
  for (const char* magic : {"\x89PNG\r\n\x1A\n", "\xFF\xD8\xFF"})
    for (fl::u64 seed = 0; seed < 200; ++seed) {
      const auto path = folder.write("random", magic + noise(8 * seed, seed));
      CHECK(error_of([&] { read(path); }).says(fl::errc::data, path));
    }
}

TEST_CASE("a folder: classes and pictures sorted by name, others left out") {
  temporary_folder folder;
  const auto grey = [](int v) { return png(2, 2, PNG_FORMAT_GRAY, std::string(4, static_cast<char>(v))); };
  for (const char* name : {"dog", "cat", "Zebra", ".hidden"}) ::mkdir((folder / name).c_str(), 0755);
  folder.write("readme.txt", "x");
  folder.write("dog/2.PNG", grey(2)), folder.write("dog/10.png", grey(10)), folder.write("dog/notes.txt", "x"),
      folder.write("dog/.p.png", "x");
  folder.write("cat/b.jpeg", jpeg(2, 2, 1, std::string(4, '\x30'))), folder.write("cat/a.jpg", grey(7));  // told by its content
  folder.write("Zebra/z.png", grey(9));
  const fl::folder_images set(folder.path());
  REQUIRE(set.count() == 5);
  REQUIRE(set.classes() == 3);
  CHECK((set.class_name(0) == "Zebra" && set.class_name(1) == "cat" && set.class_name(2) == "dog"));
  CHECK(set.by_class());
  const int labels[] = {0, 1, 1, 2, 2}, first[] = {9, 7, 0x30, 10, 2};
  fl::picture room;
  for (int i = 0; i < 5; ++i) {
    CHECK(set.label(i) == labels[i]);
    CHECK(int(set.read(i, room).pixels[0]) == first[i]);
  }
  CHECK(set.name_of(3) == "picture '" + folder.path() + "/dog/10.png'");
  CHECK(set.digest() == fl::folder_images(folder.path()).digest());
  folder.write("dog/3.png", grey(2));
  CHECK(set.digest() != fl::folder_images(folder.path()).digest());
}

TEST_CASE("a folder without a part to test on gives every tenth picture of each class to it") {
  temporary_folder folder;
  for (const char* name : {"a", "b"}) {
    ::mkdir((folder / name).c_str(), 0755);
    for (int i = 0; i < (name[0] == 'a' ? 23 : 9); ++i) folder.write(std::string(name) + "/" + char('a' + i) + ".png", "x");
  }
  using part = fl::folder_images::part;
  const fl::folder_images all(folder.path()), train(folder.path(), part::but_tenths), test(folder.path(), part::tenths);
  CHECK(all.count() == 32);
  CHECK(train.count() == 30);
  REQUIRE(test.count() == 2);
  CHECK(test.classes() == 2);
  CHECK(test.name_of(0) == "picture '" + folder.path() + "/a/j.png'");
  CHECK(test.name_of(1) == "picture '" + folder.path() + "/a/t.png'");
}

TEST_CASE("folders that hold no classes, classes that hold no pictures") {
  temporary_folder folder;
  CHECK(error_of([&] { fl::folder_images f(folder / "absent"); }).says(fl::errc::data, folder / "absent", "No such file"));
  CHECK(error_of([&] { fl::folder_images f(folder.write("file", "x")); }).says(fl::errc::data, "Not a directory"));
  CHECK(error_of([&] { fl::folder_images f(folder.path()); }).says(fl::errc::data, folder.path(), "has no subfolders"));
  ::mkdir((folder / "cat").c_str(), 0755);
  CHECK(error_of([&] { fl::folder_images f(folder.path()); }).says(fl::errc::data, folder / "cat", "has no pictures"));
  REQUIRE(::mkfifo((folder / "cat/a.png").c_str(), 0600) == 0);
  CHECK(error_of([&] { fl::folder_images f(folder.path()); }).says(fl::errc::data, folder / "cat/a.png", "no regular file"));
}
