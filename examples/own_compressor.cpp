// SPDX-License-Identifier: Apache-2.0
// A compressor of one's own: the signs of a row and their mean magnitude, 1 bit an element (after signSGD, Bernstein et
// al., arXiv 1802.04434). It sits in the compressor's seat beside the library's; --compressor chooses.
// ctest: local --peers 2 --data @DATA@/shakespeare.txt --steps 3 --batch 4 --time 32 --validation_batches 2
#include <fusionllm/linked.hpp>

#include <cmath>
#include <cstring>

#include "gpt.hpp"

struct row_signs {
  using seat = fl::compressor_seat;
  static constexpr fl::u8 wire_id = 200;
  static constexpr std::string_view label = "row_signs";
  struct state {};

  static fl::i64 row_bytes(fl::i64 columns) { return 4 + (columns + 7) / 8; }
  fl::i64 body_bytes(const fl::matrix_extent& e) const { return e.rows * row_bytes(e.columns); }
  fl::i64 max_body_bytes(const fl::matrix_extent& e) const { return body_bytes(e); }

  fl::body_form encode(state&, const fl::matrix_in& x, std::vector<std::byte>& frame, fl::mask*) const {
    const auto [rows, columns, whole] = x.extent;
    const std::size_t at = frame.size();
    frame.resize(at + std::size_t(body_bytes(x.extent)));
    for (fl::i64 r = 0; r < rows; ++r) {
      const float* row = x.data + r * columns;
      std::byte* out = frame.data() + at + std::size_t(r * row_bytes(columns));
      float mean = 0;
      for (fl::i64 c = 0; c < columns; ++c) mean += std::fabs(row[c]) / float(columns);
      std::memcpy(out, &mean, 4);
      for (fl::i64 c = 0; c < columns; ++c)
        if (row[c] < 0) out[4 + c / 8] |= std::byte(1 << (c % 8));
    }
    fl::body_form form;
    form.count = x.extent.elements();
    return form;
  }

  void decode(state&, const fl::body_form&, fl::const_byte_span body, const fl::matrix_out& y, fl::mask*) const {
    const fl::i64 columns = y.extent.columns;
    if (fl::i64(body.size()) != body_bytes(y.extent))
      fl::fail(fl::errc::protocol, "row_signs: ", body.size(), " bytes, expected ", body_bytes(y.extent));
    for (fl::i64 r = 0; r < y.extent.rows; ++r) {
      const std::byte* in = body.data() + r * row_bytes(columns);
      float mean;
      std::memcpy(&mean, in, 4);
      for (fl::i64 c = 0; c < columns; ++c)
        y.data[r * columns + c] = std::to_integer<int>(in[4 + c / 8] >> (c % 8)) & 1 ? -mean : mean;
    }
  }
};
static_assert(fl::compressor<row_signs>);

using trainer = fl::linked_trainer<byte_gpt, fl::compressors<row_signs, fl::ada_top_k<>, fl::no_compression>>;

int main(int argc, char** argv) { return fl::run_linked<trainer>(argc, argv); }
