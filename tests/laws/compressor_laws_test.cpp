// SPDX-License-Identifier: Apache-2.0
#include "compressor_laws.hpp"

#include "catch.hpp"

namespace fl = fusionllm;

namespace {

void holds(const std::vector<std::string>& broken) {
  for (const auto& line : broken) FAIL_CHECK(line);
}

/// One bit an entry and one magnitude, as a user might write it.
struct sign_only {
  using seat = fl::compressor_seat;
  static constexpr fl::u8 wire_id = 200;
  static constexpr std::string_view label = "sign_only";
  struct state {};

  fl::i64 body_bytes(const fl::matrix_extent& e) const { return e.elements() == 0 ? 0 : 4 + (e.elements() + 7) / 8; }
  fl::i64 max_body_bytes(const fl::matrix_extent& e) const { return body_bytes(e); }

  fl::body_form encode(state&, const fl::matrix_in& x, std::vector<std::byte>& frame, fl::mask*) const {
    const fl::i64 n = x.extent.elements();
    std::byte* out = fl::extend(frame, body_bytes(x.extent));
    if (n == 0) return {};
    const float scale = std::bit_cast<float>(fl::scan_with(fl::instruction_set::portable).largest(x.data, n));
    fl::store_little(out, std::bit_cast<fl::u32>(scale));
    for (fl::i64 i = 0; i < n; ++i)
      if (x.data[i] < 0) out[4 + i / 8] |= std::byte(1 << (i % 8));
    fl::body_form form;
    form.count = n;
    return form;
  }

  void decode(state&, const fl::body_form&, fl::const_byte_span body, const fl::matrix_out& y, fl::mask*) const {
    const fl::i64 n = y.extent.elements();
    if (fl::i64(body.size()) != body_bytes(y.extent))
      fl::fail(fl::errc::protocol, "sign_only: ", body.size(), " bytes");
    if (n == 0) return;
    const float scale = std::bit_cast<float>(fl::load_little<fl::u32>(body.data()));
    for (fl::i64 i = 0; i < n; ++i)
      y.data[i] = (std::to_integer<int>(body[std::size_t(4 + i / 8)]) >> (i % 8) & 1) ? -scale : scale;
  }
};

/// Breaks laws on purpose: bigger than the tensor, believes the frame's length, and each frame differs.
struct careless : sign_only {
  static constexpr std::string_view label = "careless";
  struct state {
    int frames = 0;
  };
  fl::i64 max_body_bytes(const fl::matrix_extent& e) const { return 100 + body_bytes(e); }
  fl::body_form encode(state& s, const fl::matrix_in& x, std::vector<std::byte>& frame, fl::mask*) const {
    sign_only::state none;
    const auto form = sign_only::encode(none, x, frame, nullptr);
    frame.resize(frame.size() + 100, std::byte(++s.frames));
    return form;
  }
  void decode(state&, const fl::body_form& form, fl::const_byte_span body, const fl::matrix_out& y, fl::mask*) const {
    sign_only::state none;
    const auto own = std::size_t(body_bytes(y.extent));
    if (body.size() >= own) sign_only::decode(none, form, body.first(own), y, nullptr);
  }
};

}  // namespace

TEST_CASE("every built-in compressor keeps the laws, whatever its options") {
  holds(fl::laws::of_compressor<fl::no_compression>());
  holds(fl::laws::of_compressor<fl::half_precision>());
  holds(fl::laws::of_compressor<fl::int8>());
  for (double ratio : {0.0, 1.0, 1.5, 3.0, 10.0, 100.0, 1e6})
    for (auto scope : {fl::selection_scope::row, fl::selection_scope::tensor})
      for (auto values : {fl::value_coding::f32, fl::value_coding::f16, fl::value_coding::int8}) {
        fl::codec_options options;
        options.ratio = ratio;
        options.scope = scope;
        options.values = values;
        holds(fl::laws::of_compressor<fl::ada_top_k<>>(options));
        if (ratio == 10.0) holds(fl::laws::of_compressor<fl::uniform_top_k>(options));
      }
  for (fl::i64 keep : {0, 1, 20, 5000}) {
    fl::codec_options options;
    options.keep = keep;
    holds(fl::laws::of_compressor<fl::ada_top_k<>>(options));
  }
}

TEST_CASE("a user's compressor is held to the same laws, and the laws can fail") {
  auto broken = fl::laws::of_compressor<sign_only>();
  std::erase_if(broken, [](const std::string& line) { return line.find("(1 x 1)") != line.npos; });  // 5 bytes for 4
  holds(broken);
  const auto found = fl::laws::of_compressor<careless>();
  const auto names = [&](std::string_view law) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& line) { return line.find(law) == 0; });
  };
  CHECK(names("no frame exceeds the tensor and a header"));
  CHECK(names("a codec that was used gives the same frame"));
  CHECK(names("a frame cut short is errc::protocol"));
  CHECK(!names("a frame with a byte too many"));  // the codec around it sees to that
}
