// SPDX-License-Identifier: Apache-2.0
// Random shifts and mirror images. What is drawn for a picture is a function of seed, epoch and the picture's number, so
// that a step is the same whoever computes it and whenever.
#pragma once

#include "../core/philox.hpp"

namespace fusionllm::inline v0 {

struct augmentation {
  i64 padding = 4;   ///< black pixels added on every side, of which a window of the input's size is cut at random; 0: none
  bool flip = true;  ///< mirrors every other picture, left to right
};

/// Where an output pixel of one picture comes from.
struct crop_flip {
  i64 dy = 0, dx = 0;  ///< output (y, x) shows the picture's (y + dy, x + dx); in [-padding, padding]
  bool mirrored = false;
};

/// What is drawn for picture `sample` in `epoch`. Uniform over offsets up to 2^-32.
constexpr crop_flip draw_augmentation(const augmentation& a, u64 seed, u64 epoch, u64 sample) {
  constexpr u32 domain = 0x4155474Du;  // keeps these draws apart from all others of a run
  const philox_block draw = philox({seed, epoch, 0, domain}, sample);
  const u64 places = u64(2 * a.padding + 1);
  return {i64(draw.v[0] * places >> 32) - a.padding, i64(draw.v[1] * places >> 32) - a.padding, a.flip && (draw.v[2] >> 31)};
}

}  // namespace fusionllm::inline v0
