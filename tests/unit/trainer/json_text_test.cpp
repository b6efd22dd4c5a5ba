// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/json_text.hpp>

#include <limits>
#include <nlohmann/json.hpp>

#include "catch.hpp"

namespace fl = fusionllm;

TEST_CASE("objects and arrays, on one line and on several") {
  auto write = [](int indent) {
    fl::json_text j(indent);
    j.begin_object().field("a", 1).key("b").begin_array().value(true).value("x").end_array();
    return j.key("c").begin_object().end_object().end_object().take();
  };
  CHECK(write(0) == R"({"a":1,"b":[true,"x"],"c":{}})");
  CHECK(write(2) == "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    \"x\"\n  ],\n  \"c\": {}\n}");
}

TEST_CASE("any bytes become valid JSON, text in UTF-8 is kept") {
  std::string every;
  for (int c = 0; c < 256; ++c) every += char(c);
  for (const std::string& s : {every, std::string("\xE2\x82"), std::string("\xED\xA0\x80"), std::string("\xC0\x80")})
    CHECK(nlohmann::json::accept(fl::json_text().value(s).text()));
  const std::string good = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \"\\\n\t\x01\x7F";
  CHECK(nlohmann::json::parse(fl::json_text().value(good).text()).get<std::string>() == good);
}

TEST_CASE("numbers come back to the same bits; those that JSON lacks become null") {
  for (double x : {0.1, -0.0, 1e300, 5e-324, 1.0 / 3, 123456789012345680.0})
    CHECK(nlohmann::json::parse(fl::json_text().value(x).text()).get<double>() == x);
  CHECK(fl::json_text().value(std::nan("")).text() == "null");
  CHECK(fl::json_text().value(std::numeric_limits<double>::infinity()).text() == "null");
  CHECK(fl::json_text().value(fl::u64(-1)).text() == "18446744073709551615");
}
