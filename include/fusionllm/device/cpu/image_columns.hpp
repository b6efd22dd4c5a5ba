// SPDX-License-Identifier: Apache-2.0
// An image's pixels as the columns of a matrix: row (channel, tap), column (position), so that convolution is a matrix
// product. Matrices are made in pieces that stay in the second-level cache, never of a whole micro-batch; the sizes of
// pieces are functions of the shape alone.
#pragma once

#include <cstring>

#include "../reference/convolution.hpp"

namespace fusionllm::inline v0::detail {

/// Some rows of one image's output, or several whole images' outputs.
struct position_piece {
  i64 image, images, row, rows;
};

class image_columns {
 public:
  explicit image_columns(const convolution_shape& s) : s_(s) {
    if (s.positions() >= wide) {
      rows_ = s.out_width >= most ? 1 : most / s.out_width;
      if (rows_ > s.out_height) rows_ = s.out_height;
      per_image_ = (s.out_height + rows_ - 1) / rows_;
    } else {
      rows_ = s.out_height;
      images_ = most / s.positions();
      if (images_ > s.images) images_ = s.images;
    }
  }

  i64 pieces() const { return groups_of_images() * per_image_; }
  i64 groups_of_images() const { return (s_.images + images_ - 1) / images_; }
  i64 pieces_of_group() const { return per_image_; }
  position_piece piece(i64 i) const {
    const i64 image = i / per_image_ * images_, row = i % per_image_ * rows_;
    return {image, least(images_, s_.images - image), row, least(rows_, s_.out_height - row)};
  }
  i64 columns(const position_piece& p) const { return p.images * p.rows * s_.out_width; }
  i64 most_columns() const { return images_ * rows_ * s_.out_width; }
  /// Channels of a group whose rows of a piece's matrix fit the cache.
  i64 channel_block() const {
    const i64 n = cached / (s_.taps() * most_columns());
    return n < 1 ? 1 : n > s_.group_in ? s_.group_in : n;
  }
  /// The matrix of a piece of one image is the image itself.
  bool pointwise() const { return s_.taps() == 1 && s_.stride == 1 && s_.padding == 0 && images_ == 1; }

  /// x's matrix of the piece, channels [from, to): ((to - from) * taps, columns).
  void gather(const float* x, const position_piece& p, i64 from, i64 to, float* out) const {
    each_plane(p, from, to, [&](i64 plane, i64 tap, i64 column, i64 columns) {
      take(x + plane * s_.pixels(), p, tap, out + column);
      out += column + p.rows * s_.out_width == columns ? columns : 0;
    });
  }
  /// Adds the piece's matrix to dx, channels [from, to). What lies beside the image is overwritten in `in`.
  template <class Add>
  void scatter_add(float* in, const position_piece& p, i64 from, i64 to, float* dx, Add&& add) const {
    each_plane(p, from, to, [&](i64 plane, i64 tap, i64 column, i64 columns) {
      give(in + column, p, tap, dx + plane * s_.pixels(), add);
      in += column + p.rows * s_.out_width == columns ? columns : 0;
    });
  }
  /// Rows [from, to) of y or of its cotangent: (to - from, columns).
  void gather_output(const float* y, const position_piece& p, i64 from, i64 to, float* out) const {
    each_output(p, from, to, [&](i64 at, i64 n) { std::memcpy(out, y + at, std::size_t(n) * 4), out += n; });
  }
  void scatter_output(const float* in, const position_piece& p, i64 from, i64 to, float* y) const {
    each_output(p, from, to, [&](i64 at, i64 n) { std::memcpy(y + at, in, std::size_t(n) * 4), in += n; });
  }

 private:
  static constexpr i64 wide = 128;         ///< positions of an image from which on images are cut
  static constexpr i64 most = 512;         ///< columns of a piece, about
  static constexpr i64 cached = 128 << 10; ///< floats
  static i64 least(i64 a, i64 b) { return a < b ? a : b; }

  // f(plane, tap, first column, columns) for all (channel, tap, image).
  template <class F>
  void each_plane(const position_piece& p, i64 from, i64 to, F&& f) const {
    const i64 own = p.rows * s_.out_width, columns = own * p.images;
    for (i64 c = from; c < to; ++c)
      for (i64 tap = 0; tap < s_.taps(); ++tap)
        for (i64 i = 0; i < p.images; ++i) f((p.image + i) * s_.in + c, tap, i * own, columns);
  }
  template <class F>
  void each_output(const position_piece& p, i64 from, i64 to, F&& f) const {
    for (i64 o = from; o < to; ++o)
      for (i64 i = 0; i < p.images; ++i)
        f(((p.image + i) * s_.out + o) * s_.positions() + p.row * s_.out_width, p.rows * s_.out_width);
  }

  // The columns c of an output row whose pixel c * stride + shift is on the image.
  struct range {
    i64 begin, end;
  };
  range inside(i64 shift) const {
    const i64 begin = shift >= 0 ? 0 : (-shift + s_.stride - 1) / s_.stride;
    const i64 end = s_.width - 1 - shift < 0 ? 0 : (s_.width - 1 - shift) / s_.stride + 1;
    const i64 b = least(begin, s_.out_width), e = least(end, s_.out_width);
    return {b, e < b ? b : e};
  }
  i64 image_row(const position_piece& p, i64 r, i64 tap) const {
    return (p.row + r) * s_.stride - s_.padding + tap / s_.kernel_width * s_.dilation;
  }
  i64 shift_of(i64 tap) const { return tap % s_.kernel_width * s_.dilation - s_.padding; }

  // One plane, one tap: rows * out_width floats. Where rows of in- and output are alike, whole rows are one run.
  void take(const float* x, const position_piece& p, i64 tap, float* out) const {
    const i64 shift = shift_of(tap), w = s_.out_width;
    const range on = inside(shift);
    if (w != s_.width || s_.stride > 1) {
      for (i64 r = 0; r < p.rows; ++r, out += w) {
        const i64 row = image_row(p, r, tap);
        if (row < 0 || row >= s_.height) {
          std::memset(out, 0, std::size_t(w) * 4);
          continue;
        }
        const float* from = x + row * s_.width + shift;
        for (i64 c = 0; c < on.begin; ++c) out[c] = 0;
        if (s_.stride == 1)
          for (i64 c = on.begin; c < on.end; ++c) out[c] = from[c];
        else
          for (i64 c = on.begin; c < on.end; ++c) out[c] = from[c * s_.stride];
        for (i64 c = on.end; c < w; ++c) out[c] = 0;
      }
      return;
    }
    const run on_image = rows_on_image(p, tap, shift);
    if (on_image.begin > 0) std::memset(out, 0, std::size_t(on_image.begin) * 4);
    if (on_image.end > on_image.begin)
      std::memcpy(out + on_image.begin, x + on_image.first, std::size_t(on_image.end - on_image.begin) * 4);
    if (on_image.end < p.rows * w)
      std::memset(out + on_image.end, 0, std::size_t(p.rows * w - on_image.end) * 4);
    zero_borders(out, p.rows, on);
  }

  template <class Add>
  void give(float* in, const position_piece& p, i64 tap, float* dx, Add&& add) const {
    const i64 shift = shift_of(tap), w = s_.out_width;
    const range on = inside(shift);
    if (w != s_.width || s_.stride > 1) {
      for (i64 r = 0; r < p.rows; ++r, in += w) {
        const i64 row = image_row(p, r, tap);
        if (row < 0 || row >= s_.height) continue;
        float* to = dx + row * s_.width + shift;
        if (s_.stride == 1)
          for (i64 c = on.begin; c < on.end; ++c) to[c] += in[c];
        else
          for (i64 c = on.begin; c < on.end; ++c) to[c * s_.stride] += in[c];
      }
      return;
    }
    zero_borders(in, p.rows, on);
    const run on_image = rows_on_image(p, tap, shift);
    if (on_image.end > on_image.begin)
      add(dx + on_image.first, in + on_image.begin, on_image.end - on_image.begin);
  }

  // Floats [begin, end) of the piece's run lie at `first` and after it in the plane; the others are beside the plane.
  struct run {
    i64 begin, end, first;
  };
  run rows_on_image(const position_piece& p, i64 tap, i64 shift) const {
    const i64 n = p.rows * s_.width, start = image_row(p, 0, tap) * s_.width + shift;
    const i64 begin = start < 0 ? least(-start, n) : 0, end = start + n > s_.pixels() ? s_.pixels() - start : n;
    return {begin, end < begin ? begin : end, start + begin};
  }
  void zero_borders(float* x, i64 rows, range on) const {
    if (on.begin == 0 && on.end == s_.out_width) return;
    for (i64 r = 0; r < rows; ++r, x += s_.out_width) {
      for (i64 c = 0; c < on.begin; ++c) x[c] = 0;
      for (i64 c = on.end; c < s_.out_width; ++c) x[c] = 0;
    }
  }

  convolution_shape s_;
  i64 rows_ = 1, images_ = 1, per_image_ = 1;
};

}  // namespace fusionllm::inline v0::detail
