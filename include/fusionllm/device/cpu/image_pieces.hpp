// SPDX-License-Identifier: Apache-2.0
// How a convolution is cut: positions into pieces, channels and outputs into blocks, so that the matrices of a piece
// stay in the second-level cache and a team has tasks. All sizes are functions of the shape alone: so are the results.
#pragma once

#include "../reference/convolution.hpp"

namespace fusionllm::inline v0::detail {

/// Some rows of one image's output, or several whole images' outputs.
struct position_piece {
  i64 image, images, row, rows;
};
/// Outputs [first, first + count), all of one group.
struct output_range {
  i64 first, count;
};

class image_pieces {
 public:
  explicit image_pieces(const convolution_shape& shape) : s(shape), k(shape.group_in * shape.taps()) {
    if (s.positions() >= wide) {
      rows_ = least(s.out_width >= most ? 1 : most / s.out_width, s.out_height);
      per_image_ = (s.out_height + rows_ - 1) / rows_;
    } else {
      rows_ = s.out_height;
      images_ = least(most / s.positions(), s.images);
    }
  }

  const convolution_shape s;
  const i64 k;  ///< products of one output

  i64 pieces() const { return groups_of_images() * per_image_; }
  i64 groups_of_images() const { return (s.images + images_ - 1) / images_; }
  i64 pieces_of_group() const { return per_image_; }
  position_piece piece(i64 i) const {
    const i64 image = i / per_image_ * images_, row = i % per_image_ * rows_;
    return {image, least(images_, s.images - image), row, least(rows_, s.out_height - row)};
  }
  i64 columns(const position_piece& p) const { return p.images * p.rows * s.out_width; }
  i64 most_columns() const { return images_ * rows_ * s.out_width; }
  /// The matrix of a piece is a part of the image itself.
  bool pointwise() const { return s.taps() == 1 && s.stride == 1 && s.padding == 0 && images_ == 1; }

  /// Channels of a group whose rows of a piece's matrix fit the cache.
  i64 channel_block() const {
    if (pointwise()) return least(s.group_in, 128);
    const i64 n = cached / (s.taps() * most_columns());
    return n < 1 ? 1 : least(n, s.group_in);
  }
  /// Channels of one task of a weight's gradient: of equal blocks, four at least where there are enough channels.
  i64 weight_block() const {
    const i64 blocks = (s.group_in + channel_block() - 1) / channel_block(),
              n = blocks < 4 && s.group_in >= 64 ? 4 : blocks;
    return (s.group_in + n - 1) / n;
  }
  /// Into how many shares a group's outputs are cut where there are few tasks.
  i64 output_shares(i64 tasks) const {
    const i64 shares = tasks >= 4 ? 1 : tasks >= 2 ? 2 : 4;
    return s.group_out < 64 ? 1 : least(shares, s.group_out / 64);
  }
  output_range outputs(i64 share, i64 shares) const {
    const i64 from = s.group_out * (share % shares) / shares;
    return {share / shares * s.group_out + from, s.group_out * (share % shares + 1) / shares - from};
  }

  /// Where a piece of y begins, and of x where they are alike (pointwise).
  i64 output_at(const position_piece& p, i64 output) const {
    return (p.image * s.out + output) * s.positions() + p.row * s.out_width;
  }
  i64 input_at(const position_piece& p, i64 channel) const {
    return (p.image * s.in + channel) * s.pixels() + p.row * s.width;
  }

 protected:
  static i64 least(i64 a, i64 b) { return a < b ? a : b; }

 private:
  static constexpr i64 wide = 128;          ///< positions of an image from which on images are cut
  static constexpr i64 most = 512;          ///< columns of a piece, about
  static constexpr i64 cached = 128 << 10;  ///< floats
  i64 rows_ = 1, images_ = 1, per_image_ = 1;
};

}  // namespace fusionllm::inline v0::detail
