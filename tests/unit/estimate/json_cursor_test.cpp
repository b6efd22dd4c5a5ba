// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/estimate/json_cursor.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fl::errc;
using fusionllm_test::error_of;

namespace {

const nlohmann::json sample = nlohmann::json::parse(R"({"a": {"list": [1, {"x": -2.5}]}, "name": "n", "empty": "",
  "big": 18446744073709551615, "yes": true, "nothing": null, "zero": 0})");
fl::json_cursor root() { return {sample, "", errc::topology}; }

}  // namespace

TEST_CASE("values know their places") {
  const auto list = root().at("a").at("list").each();
  CHECK(list[0].place() == "a.list[0]");
  CHECK(list[1].at("x").place() == "a.list[1].x");
  CHECK(list[1].at("x").number(-10, 10) == -2.5);
  CHECK(root().at("name").text() == "n");
  CHECK(root().text("absent", "other") == "other");
  CHECK(root().at("yes").truth());
  CHECK(root().at("a").at("list").each()[0].integer(0, 5) == 1);
}

TEST_CASE("each wrong value is an error with place, found and expected") {
  CHECK(error_of([] { root().at("absent"); }).says(errc::topology, "absent", "required"));
  CHECK(error_of([] { root().at("name").at("x"); }).says(errc::topology, "name:", "\"x\""));
  CHECK(error_of([] { root().at("name").each(); }).says(errc::topology, "name", "found \"n\"", "a list"));
  CHECK(error_of([] { root().at("a").text(); }).says(errc::topology, "a:", "text"));
  CHECK(error_of([] { root().at("empty").text(); }).says(errc::topology, "empty:", "not empty"));
  CHECK(error_of([] { root().at("name").truth(); }).says(errc::topology, "true or false"));
  CHECK(error_of([] { root().at("a").at("list").each()[1].at("x").integer(0, 9); })
            .says(errc::topology, "a.list[1].x", "-2.5", "from 0 to 9"));
  CHECK(error_of([] { root().at("big").integer(0, 9); }).says(errc::topology, "18446744073709551615"));
  CHECK(error_of([] { root().at("nothing").number(0, 1); }).says(errc::topology, "nothing", "null", "number above 0"));
  CHECK(error_of([] { root().at("zero").number(0, 1); }).says(errc::topology, "zero", "above 0 to 1"));
  CHECK(root().at("zero").number(0, 1, true) == 0);
  CHECK(error_of([] { root().only({"a", "name"}); }).says(errc::topology, "unknown key", "a, name"));
  CHECK(error_of([] { root().at("name").only({"a"}); }).says(errc::topology, "an object"));
  CHECK(error_of([] { root().at("a").refuse("no good"); }).says(errc::topology, "a: no good"));
}

TEST_CASE("what is not JSON, and keys that come twice, are errors") {
  for (const char* text : {"", "{", "{\"a\": NaN}", "{\"a\": 1e999}", "{'a': 1}", "[1,]", "{\"a\": 1} x"})
    CHECK(error_of([&] { fl::parse_json(text, errc::plan, "the file"); }).says(errc::plan, "the file is not JSON"));
  CHECK(error_of([] { fl::parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", errc::plan, "f"); })
            .says(errc::plan, "\"b\" comes twice"));
  CHECK(fl::parse_json(R"({"a": {"b": 1}, "c": {"b": 1}})", errc::plan, "f").size() == 2);
}

TEST_CASE("nesting without end is an error, whatever it is made of, and not a lack of stack") {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}"), std::pair("[{\"a\":", "}]")})
    for (std::size_t n : {100u, 100'000u}) {
      std::string text, end;
      for (std::size_t i = 0; i < n; ++i) text += open, end += close;
      CHECK(error_of([&] { fl::parse_json(text + "1" + end, errc::plan, "the file"); }).says(errc::plan, "the file", "nested deeper than 64"));
      CHECK(error_of([&] { fl::parse_json(text, errc::plan, "the file"); }).says(errc::plan, "the file"));
    }
  CHECK(fl::parse_json(std::string(60, '[') + std::string(60, ']'), errc::plan, "f").is_array());
}

TEST_CASE("keys from outside are made safe for a terminal") {
  const auto j = fl::parse_json(R"({"\u001b[31mred": 1})", errc::plan, "f");
  const auto e = error_of([&] { fl::json_cursor(j, "", errc::plan).only({"a"}); });
  CHECK(e.says(errc::plan, "unknown key", "\\u001b[31mred"));
  CHECK(e.text.find('\x1b') == std::string::npos);
}

TEST_CASE("files that cannot be read are errors") {
  CHECK(error_of([] { fl::read_small_file("/no/such/file", errc::plan); }).says(errc::plan, "/no/such/file"));
  CHECK(error_of([] { fl::read_small_file("/", errc::plan); }).says(errc::plan, "cannot read /", "directory"));
  CHECK(error_of([] { fl::read_small_file("/dev/zero", errc::plan); }).says(errc::plan, "cannot read /dev/zero", "device"));
  const fusionllm_test::temporary_folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { fl::read_small_file(pipe, errc::plan); }).says(errc::plan, "cannot read " + pipe, "pipe"));
}
