// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/whole_file.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

namespace {
struct scratch {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("whole_file_" + std::to_string(::getpid()));
  scratch() { std::filesystem::create_directories(folder); }
  ~scratch() { std::filesystem::remove_all(folder); }
  std::string path(const char* name) const { return (folder / name).string(); }
  std::string read(const char* name) const {
    std::ostringstream s;
    s << std::ifstream(folder / name).rdbuf();
    return s.str();
  }
};
}  // namespace

TEST_CASE("a file is there when it is whole, and what was there before until then") {
  scratch s;
  std::ofstream(s.path("a")) << "before";
  {
    fl::whole_file f(s.path("a"), fl::errc::data, "table");
    f.write("12345", 5);
    CHECK(s.read("a") == "before");
    const std::byte nine[] = {std::byte{'9'}};
    f.rewrite_beginning(nine);
    CHECK(f.written() == 5);
    f.finish();
  }
  CHECK(s.read("a") == "92345");
  { fl::whole_file(s.path("a"), fl::errc::data, "table").write("x", 1); }
  CHECK(s.read("a") == "92345");
  CHECK_FALSE(std::filesystem::exists(s.path("a.part")));
}

TEST_CASE("what goes wrong says what, where and why, and leaves nothing behind") {
  scratch s;
  CHECK(error_of([&] { fl::whole_file(s.path("no/such"), fl::errc::data, "table"); })
            .says(fl::errc::data, "cannot create table", "no/such", "No such file", "check the folder"));
  REQUIRE(::symlink("/dev/full", s.path("b.part").c_str()) == 0);
  CHECK(error_of([&] { fl::whole_file(s.path("b"), fl::errc::data, "table").write("x", 1); })
            .says(fl::errc::resource, "cannot write table", "after 0 bytes", "No space left", "free some space"));
  CHECK_FALSE(std::filesystem::is_symlink(s.path("b.part")));
  std::filesystem::create_directory(s.path("c"));
  CHECK(error_of([&] {
          fl::whole_file f(s.path("c"), fl::errc::data, "table");
          f.finish();
        }).says(fl::errc::data, "cannot rename table"));
  CHECK_FALSE(std::filesystem::exists(s.path("c.part")));
}
