// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/compress/registry.hpp>

#include <string>

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

struct twice : fl::no_compression {
  static constexpr fl::u8 wire_id = 130;
  static constexpr std::string_view label = "twice";
};

struct without_decode {
  using seat = fl::compressor_seat;
  static constexpr fl::u8 wire_id = 131;
  static constexpr std::string_view label = "without_decode";
  struct state {};
  fl::i64 body_bytes(const fl::matrix_extent&) const { return 0; }
  fl::i64 max_body_bytes(const fl::matrix_extent&) const { return 0; }
  fl::body_form encode(state&, const fl::matrix_in&, std::vector<std::byte>&, fl::mask*) const { return {}; }
};

using mine = fl::compressors<twice, fl::ada_top_k<>, fl::no_compression>;

static_assert(fl::compressor<twice> && fl::compressor<fl::ada_top_k<>> && fl::compressor<fl::int8>);
static_assert(!fl::compressor<without_decode> && fl::can_encode<without_decode> && !fl::can_decode<without_decode>);
static_assert(!fl::compressor<int>);
static_assert(mine::first() == "twice" && mine::has("ada_top_k") && !mine::has("int8"));
static_assert(std::same_as<fl::compressor_list<mine>, mine>);
static_assert(std::same_as<fl::compressor_list<twice>, fl::compressors<twice>>);
static_assert(fl::built_in_compressors::first() == "ada_top_k");

}  // namespace

TEST_CASE("a codec is made by name, from the built-in list or from one's own") {
  for (const char* label : {"no_compression", "half_precision", "int8", "uniform_top_k", "ada_top_k"}) {
    const auto c = fl::make_codec(label);
    CHECK(c->label() == label);
    CHECK(c->lossless() == (c->label() == "no_compression"));
    CHECK(c->adaptive() == (c->label() == "ada_top_k"));
  }
  CHECK(mine::make("twice")->wire_id() == 130);
  CHECK(mine::names() == "twice, ada_top_k, no_compression");
}

TEST_CASE("an unknown name is a configuration error that lists the known ones") {
  for (const char* label : {"", "top_k", "INT8", "int8 "}) {
    try {
      fl::make_codec(label);
      FAIL("accepted");
    } catch (const fl::error& e) {
      CHECK(e.code() == fl::errc::config);
      CHECK(std::string(e.what()).find("ada_top_k, uniform_top_k, int8, half_precision, no_compression")
            != std::string::npos);
    }
  }
}

TEST_CASE("options that no top-k takes are a configuration error") {
  fl::codec_options options;
  options.values = fl::value_coding::own;
  CHECK_THROWS_AS(fl::make_codec("ada_top_k", options), fl::error);
  CHECK_NOTHROW(fl::make_codec("int8", options));
}
