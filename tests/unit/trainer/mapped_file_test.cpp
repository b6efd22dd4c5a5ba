// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/mapped_file.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

TEST_CASE("a file is memory") {
  const temporary_folder folder;
  fl::mapped_file f(folder.write("f", "some text"), fl::errc::data, "a file");
  CHECK(f.text() == "some text");
  CHECK(f.size() == 9);
  fl::mapped_file moved = std::move(f);
  CHECK(moved.text() == "some text");
  CHECK(f.size() == 0);
  // Replaced by rename, as writers do, it stays what it was.
  std::rename(folder.write("other", "anything else").c_str(), (folder / "f").c_str());
  CHECK(moved.text() == "some text");
  moved = fl::mapped_file(folder.write("empty", ""), fl::errc::data, "a file");
  CHECK(moved.bytes().empty());
}

TEST_CASE("what is no file is named") {
  const temporary_folder folder;
  const auto error = [&](const std::string& path) {
    return error_of([&] { fl::mapped_file(path, fl::errc::checkpoint, "weights file"); });
  };
  CHECK(error(folder / "absent").says(fl::errc::checkpoint, "weights file", "absent", "No such file"));
  CHECK(error(folder.path()).says(fl::errc::checkpoint, "is a directory"));
  CHECK(error("/dev/null").says(fl::errc::checkpoint, "a pipe or a device"));
}
