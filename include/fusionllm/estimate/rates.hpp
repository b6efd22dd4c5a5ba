// SPDX-License-Identifier: Apache-2.0
// How fast a device is at each kind of operator: fitted in a warm-up, or assumed from a topology.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster.hpp"

namespace fusionllm::inline v0 {

enum class direction : u8 { forward, backward };

constexpr const char* name_of(direction d) { return d == direction::forward ? "forward" : "backward"; }

/// Attoseconds (1e-18 s), because a fast device needs less than a femtosecond for ten operations.
inline constexpr u64 attoseconds_per_nanosecond = 1'000'000'000;

/// time(flops, bytes) = flops * per_flop + bytes * per_byte + launch.
struct operator_rate {
  u64 attoseconds_per_flop = 0;
  u64 attoseconds_per_byte = 0;
  nanoseconds launch = 0;

  constexpr nanoseconds time(u64 flops, u64 bytes) const {
    return plus(plus(scaled(flops, attoseconds_per_flop, attoseconds_per_nanosecond),
                     scaled(bytes, attoseconds_per_byte, attoseconds_per_nanosecond)),
                launch);
  }
  constexpr bool operator==(const operator_rate&) const = default;
};

struct device_rates {
  struct kind_rate {
    std::string kind;  ///< the operator's name
    direction way = direction::forward;
    operator_rate rate;
  };

  operator_rate other;           ///< of every kind that is not listed
  std::vector<kind_rate> kinds;
  operator_rate update;          ///< of the optimizer; `flops` there are parameters
  u64 attoseconds_per_coded_byte = 0;  ///< to encode or decode one byte of a raw tensor

  const operator_rate& of(std::string_view kind, direction way) const {
    for (const kind_rate& k : kinds)
      if (k.way == way && k.kind == kind) return k.rate;
    return other;
  }
};

/// Floating-point operations that an optimizer does for one parameter, where nothing was measured (AdamW: about 15).
inline constexpr u64 assumed_flops_per_update = 16;

/// Every kind alike: at the machine's flops and bytes per second. Errors: errc::topology for a speed of 0.
inline device_rates assumed_rates(const machine& m) {
  if (m.flops_per_second == 0) fail(errc::topology, m.name, " has a speed of 0 flops per second: give what it reaches");
  const u64 second_in_attoseconds = u64(second) * attoseconds_per_nanosecond;
  device_rates r;
  r.other = {u64(scaled(1, second_in_attoseconds, m.flops_per_second)),
             m.memory_bytes_per_second ? u64(scaled(1, second_in_attoseconds, m.memory_bytes_per_second)) : 0, m.launch};
  r.update = {r.other.attoseconds_per_flop * assumed_flops_per_update, 0, m.launch};
  return r;
}

}  // namespace fusionllm::inline v0
