// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/whole_file.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/file_size_limit.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;
using names = std::vector<std::string>;

TEST_CASE("a file is there when it is whole, and what was there before until then") {
  const temporary_folder folder;
  const std::string path = folder.write("a", "before");
  {
    fl::whole_file f(path, fl::errc::data, "table");
    f.write("12345", 5);
    CHECK(folder.read("a") == "before");
    const std::byte nine[] = {std::byte{'9'}};
    f.rewrite_beginning(nine);
    CHECK(f.written() == 5);
    f.finish();
  }
  CHECK(folder.read("a") == "92345");
  { fl::whole_file(path, fl::errc::data, "table").write("x", 1); }
  CHECK(folder.read("a") == "92345");
  CHECK(folder.names() == names{"a"});
}

TEST_CASE("writers of one path do not mix, the last one stays; no file of another is touched") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  const std::string left = "a.part." + std::to_string(::getpid()) + "-0";
  folder.write("a.part", "an input of this name"), folder.write(left, "of a killed process of this number");
  {
    fl::whole_file one(path, fl::errc::data, "table"), two(path, fl::errc::data, "table");
    one.write("11", 2), two.write("2", 1), one.write("11", 2);
    one.finish();
    CHECK(folder.read("a") == "1111");
    two.write("22", 2);
    two.finish();
  }
  CHECK(folder.read("a") == "222");
  CHECK(folder.read("a.part") == "an input of this name");
  CHECK(folder.read(left) == "of a killed process of this number");
  CHECK(folder.names() == names{"a", "a.part", left});
}

TEST_CASE("what goes wrong says what, where and why, and leaves nothing behind") {
  const temporary_folder folder;
  CHECK(error_of([&] { fl::whole_file(folder / "no/such", fl::errc::data, "table"); })
            .says(fl::errc::data, "cannot create table", "no/such", "No such file", "check the folder"));
  const auto full = error_of([&] {
    const fusionllm_test::file_size_limit limit(0);
    fl::whole_file(folder / "b", fl::errc::data, "table").write("x", 1);
  });
  CHECK(full.says(fl::errc::resource, "cannot write table", "after 0 bytes", "free some space"));
  CHECK(folder.names().empty());
  std::filesystem::create_directory(folder / "c");
  CHECK(error_of([&] {
          fl::whole_file f(folder / "c", fl::errc::data, "table");
          f.finish();
        }).says(fl::errc::data, "cannot rename table"));
  CHECK(folder.names() == names{"c"});
}
