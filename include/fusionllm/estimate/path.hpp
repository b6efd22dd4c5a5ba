// SPDX-License-Identifier: Apache-2.0
// One direction between two peers: a message of n bytes holds it for n / bandwidth and arrives a latency later.
#pragma once

#include "scaled.hpp"

namespace fusionllm::inline v0 {

struct path {
  nanoseconds latency = 0;
  u64 bytes_per_second = 0;  ///< 0: nothing gets through

  constexpr bool open() const { return bytes_per_second != 0; }
  /// How long `bytes` keep others waiting.
  constexpr nanoseconds occupancy(u64 bytes) const { return scaled(bytes, u64(second), bytes_per_second); }
  /// From the first byte sent to the last byte received; `never` where nothing gets through.
  constexpr nanoseconds transfer(u64 bytes) const { return open() ? plus(latency, occupancy(bytes)) : never; }
  constexpr bool operator==(const path&) const = default;
};

}  // namespace fusionllm::inline v0
