// SPDX-License-Identifier: Apache-2.0
// What configuration says about the compressor of one direction of a link.
#pragma once

#include <optional>

#include "../core/error.hpp"
#include "tensor.hpp"
#include "values.hpp"

namespace fusionllm::inline v0 {

class thread_team;

/// Where the largest entries are looked for.
enum class selection_scope : u8 { row, tensor };

struct codec_options {
  /// Bytes of the tensor in fp32 over bytes of its frame, of those compressors that have a choice. Up to 1: as it is.
  double ratio = 10;
  /// Entries to keep a row or a tensor whatever the ratio; negative: what the ratio leaves room for.
  i64 keep = -1;
  std::optional<selection_scope> scope{};  ///< empty: the compressor's own
  std::optional<value_coding> values{};    ///< f32, f16 or int8; empty: the compressor's own
  thread_team* team = nullptr;             ///< who selects; null: the calling thread
  codec_limits limits{};
};

/// A ratio in thousandths: sizes and times are computed from integers, so that no compiler changes them.
/// Errors: errc::config for a negative, absurd or non-finite ratio.
inline i64 ratio_in_thousandths(double ratio) {
  if (!(ratio >= 0 && ratio <= 1e6))
    fail(errc::config, "compression ratio ", ratio, ": expected 0 to 1000000 (up to 1 sends tensors as they are)");
  return i64(ratio * 1000 + 0.5);
}

}  // namespace fusionllm::inline v0
