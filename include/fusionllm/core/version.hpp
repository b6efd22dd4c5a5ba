// SPDX-License-Identifier: Apache-2.0
// The version of the library, which CMake reads from here, and of the wire, which changes only when frames do.
#pragma once

namespace fusionllm::inline v0 {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

/// Peers of unequal wire versions refuse each other in the handshake.
inline constexpr unsigned wire_version = 3;

}  // namespace fusionllm::inline v0
