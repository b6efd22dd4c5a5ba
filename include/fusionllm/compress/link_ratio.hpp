// SPDX-License-Identifier: Apache-2.0
// AdaTopK's ratios, after FusionLLM: no link has to be faster than the slowest link at the user's ratio, or than the
// slowest compute; to compress past that only loses signal. Integers throughout: plans do not depend on a compiler.
#pragma once

#include <span>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// What one direction of a link has to carry in a micro-batch, uncompressed: a latency that no ratio shortens, and the
/// time that the bytes take.
struct link_load {
  nanoseconds latency = 0;
  nanoseconds transfer = 0;
};

namespace detail {

/// ceil(a * 1000 / b) for a >= 0, b > 0, or the largest ratio where that is more.
constexpr i64 thousandths_of(i64 a, i64 b) {
  constexpr i64 largest = 1'000'000'000;
  if (a / b >= largest / 1000) return largest;
  const i64 rest = a % b;
  const i64 part = b <= 9'000'000'000'000'000 ? (rest * 1000 + b - 1) / b : rest / (b / 1000) + 1;
  return a / b * 1000 + part;
}

/// floor(a * 1000 / thousandths) for thousandths >= 1000.
constexpr nanoseconds shortened(nanoseconds a, i64 thousandths) {
  return a / thousandths * 1000 + a % thousandths * 1000 / thousandths;
}

}  // namespace detail

/// The target: the slowest link at the user's ratio (in thousandths, 1000 and more), or the slowest compute.
constexpr nanoseconds link_target(std::span<const link_load> links, nanoseconds slowest_compute, i64 user_thousandths) {
  nanoseconds target = slowest_compute > 0 ? slowest_compute : 0;
  const i64 ratio = user_thousandths < 1000 ? 1000 : user_thousandths;
  for (const link_load& link : links) {
    const nanoseconds at_ratio = link.latency + detail::shortened(link.transfer, ratio);
    if (at_ratio > target) target = at_ratio;
  }
  return target;
}

/// The ratio, in thousandths, with which a link meets the target: 1000 (as it is) where it does without, never above
/// the user's.
constexpr i64 link_ratio(const link_load& link, nanoseconds target, i64 user_thousandths) {
  const i64 most = user_thousandths < 1000 ? 1000 : user_thousandths;
  const nanoseconds left = target - link.latency;
  if (link.transfer <= left || link.transfer <= 0) return 1000;
  if (left <= 0) return most;
  const i64 needed = detail::thousandths_of(link.transfer, left);
  return needed < most ? needed : most;
}

}  // namespace fusionllm::inline v0
