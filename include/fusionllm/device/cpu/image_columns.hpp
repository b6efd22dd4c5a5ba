// SPDX-License-Identifier: Apache-2.0
// An image's pixels as the columns of a matrix: row (channel, tap), column (position), so that convolution is a matrix
// product. Where rows of in- and output are alike, a tap is one shifted run of pixels, with zeros at the borders.
#pragma once

#include <cstring>

#include "gemm.hpp"
#include "image_pieces.hpp"

namespace fusionllm::inline v0::detail {

class image_columns : public image_pieces {
 public:
  using image_pieces::image_pieces;

  /// x's matrix of the piece, channels [from, to): ((to - from) * taps, columns).
  void gather(const float* x, const position_piece& p, i64 from, i64 to, float* out) const {
    each_plane(p, from, to, [&](i64 plane, i64 tap, i64 column, i64 columns) {
      take(x + plane * s.pixels(), p, tap, out + column);
      out += column + p.rows * s.out_width == columns ? columns : 0;
    });
  }
  /// Adds the piece's matrix to dx, channels [from, to). What lies beside the image is overwritten in `in`.
  template <class Add>
  void scatter_add(float* in, const position_piece& p, i64 from, i64 to, float* dx, Add&& add) const {
    each_plane(p, from, to, [&](i64 plane, i64 tap, i64 column, i64 columns) {
      give(in + column, p, tap, dx + plane * s.pixels(), add);
      in += column + p.rows * s.out_width == columns ? columns : 0;
    });
  }
  /// Rows [from, to) of y or of its cotangent: (to - from, columns).
  void gather_output(const float* y, const position_piece& p, i64 from, i64 to, float* out) const {
    each_output(p, from, to, [&](i64 at, i64 n) { std::memcpy(out, y + at, std::size_t(n) * 4), out += n; });
  }
  void scatter_output(const float* in, const position_piece& p, i64 from, i64 to, float* y) const {
    each_output(p, from, to, [&](i64 at, i64 n) { std::memcpy(y + at, in, std::size_t(n) * 4), in += n; });
  }

  /// y, or its cotangent, on a piece: (outputs, columns). `own` is memory for it where it is not one matrix already.
  matrix output_matrix(const float* y, const position_piece& p, i64 from, i64 to, float* own) const {
    if (p.images == 1) return {y + output_at(p, from), s.positions()};
    gather_output(y, p, from, to, own);
    return {own, columns(p)};
  }

 private:
  // f(plane, tap, first column, columns) for all (channel, tap, image).
  template <class F>
  void each_plane(const position_piece& p, i64 from, i64 to, F&& f) const {
    const i64 own = p.rows * s.out_width, columns = own * p.images;
    for (i64 c = from; c < to; ++c)
      for (i64 tap = 0; tap < s.taps(); ++tap)
        for (i64 i = 0; i < p.images; ++i) f((p.image + i) * s.in + c, tap, i * own, columns);
  }
  template <class F>
  void each_output(const position_piece& p, i64 from, i64 to, F&& f) const {
    for (i64 o = from; o < to; ++o)
      for (i64 i = 0; i < p.images; ++i)
        f(((p.image + i) * s.out + o) * s.positions() + p.row * s.out_width, p.rows * s.out_width);
  }

  // The columns c of an output row whose pixel c * stride + shift is on the image.
  struct range {
    i64 begin, end;
  };
  range inside(i64 shift) const {
    const i64 begin = shift >= 0 ? 0 : (-shift + s.stride - 1) / s.stride;
    const i64 end = s.width - 1 - shift < 0 ? 0 : (s.width - 1 - shift) / s.stride + 1;
    const i64 b = least(begin, s.out_width), e = least(end, s.out_width);
    return {b, e < b ? b : e};
  }
  i64 image_row(const position_piece& p, i64 r, i64 tap) const {
    return (p.row + r) * s.stride - s.padding + tap / s.kernel_width * s.dilation;
  }
  i64 shift_of(i64 tap) const { return tap % s.kernel_width * s.dilation - s.padding; }

  // One plane, one tap: rows * out_width floats. Where rows of in- and output are alike, whole rows are one run.
  void take(const float* x, const position_piece& p, i64 tap, float* out) const {
    const i64 shift = shift_of(tap), w = s.out_width;
    const range on = inside(shift);
    if (w != s.width || s.stride > 1) {
      for (i64 r = 0; r < p.rows; ++r, out += w) {
        const i64 row = image_row(p, r, tap);
        if (row < 0 || row >= s.height) {
          std::memset(out, 0, std::size_t(w) * 4);
          continue;
        }
        const float* from = x + row * s.width + shift;
        for (i64 c = 0; c < on.begin; ++c) out[c] = 0;
        if (s.stride == 1)
          for (i64 c = on.begin; c < on.end; ++c) out[c] = from[c];
        else
          for (i64 c = on.begin; c < on.end; ++c) out[c] = from[c * s.stride];
        for (i64 c = on.end; c < w; ++c) out[c] = 0;
      }
      return;
    }
    const run on_image = rows_on_image(p, tap, shift);
    if (on_image.begin > 0) std::memset(out, 0, std::size_t(on_image.begin) * 4);
    if (on_image.end > on_image.begin)
      std::memcpy(out + on_image.begin, x + on_image.first, std::size_t(on_image.end - on_image.begin) * 4);
    if (on_image.end < p.rows * w) std::memset(out + on_image.end, 0, std::size_t(p.rows * w - on_image.end) * 4);
    zero_borders(out, p.rows, on);
  }

  template <class Add>
  void give(float* in, const position_piece& p, i64 tap, float* dx, Add&& add) const {
    const i64 shift = shift_of(tap), w = s.out_width;
    const range on = inside(shift);
    if (w != s.width || s.stride > 1) {
      for (i64 r = 0; r < p.rows; ++r, in += w) {
        const i64 row = image_row(p, r, tap);
        if (row < 0 || row >= s.height) continue;
        float* to = dx + row * s.width + shift;
        if (s.stride == 1)
          for (i64 c = on.begin; c < on.end; ++c) to[c] += in[c];
        else
          for (i64 c = on.begin; c < on.end; ++c) to[c * s.stride] += in[c];
      }
      return;
    }
    zero_borders(in, p.rows, on);
    const run on_image = rows_on_image(p, tap, shift);
    if (on_image.end > on_image.begin) add(dx + on_image.first, in + on_image.begin, on_image.end - on_image.begin);
  }

  // Floats [begin, end) of the piece's run lie at `first` and after it in the plane; the others are beside the plane.
  struct run {
    i64 begin, end, first;
  };
  run rows_on_image(const position_piece& p, i64 tap, i64 shift) const {
    const i64 n = p.rows * s.width, start = image_row(p, 0, tap) * s.width + shift;
    const i64 begin = start < 0 ? least(-start, n) : 0, end = start + n > s.pixels() ? s.pixels() - start : n;
    return {begin, end < begin ? begin : end, start + begin};
  }
  void zero_borders(float* x, i64 rows, range on) const {
    if (on.begin == 0 && on.end == s.out_width) return;
    for (i64 r = 0; r < rows; ++r, x += s.out_width) {
      for (i64 c = 0; c < on.begin; ++c) x[c] = 0;
      for (i64 c = on.end; c < s.out_width; ++c) x[c] = 0;
    }
  }
};

}  // namespace fusionllm::inline v0::detail
