// SPDX-License-Identifier: Apache-2.0
// XXH3, 64 bits: the checksum of frames. It finds damage, not malice.
#pragma once

#include "../core/xxh3.hpp"

#include <span>

#include "../core/bytes.hpp"

namespace fusionllm::inline v0 {

inline u64 checksum(const_byte_span data) { return XXH3_64bits(data.data(), data.size()); }

/// The checksum of the parts one after another.
inline u64 checksum(const_byte_span head, std::span<const const_byte_span> parts) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, head.data(), head.size());
  for (const const_byte_span& part : parts) XXH3_64bits_update(&state, part.data(), part.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace fusionllm::inline v0
