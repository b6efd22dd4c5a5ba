// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
// Random numbers are a function of a key and an index, so that no partition and no order of execution changes them.
#pragma once

#include "config.hpp"
#include "types.hpp"

namespace fusionllm::inline v0 {

/// Who draws: every draw of a run has its own key.
struct random_key {
  u64 seed = 0;
  u64 step = 0;
  u32 micro_batch = 0;
  u32 node = 0;
};

struct philox_block {
  u32 v[4];
};

/// Four random words for counter `index` under `key`.
FL_HD constexpr philox_block philox(const random_key& key, u64 index) {
  u32 c[4] = {u32(index), u32(index >> 32) ^ (key.micro_batch << 8), key.node, u32(key.step)};
  u32 k[2] = {u32(key.seed), u32(key.seed >> 32) ^ u32(key.step >> 32)};
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c[0];
    const u64 b = u64(0xCD9E8D57u) * c[2];
    const u32 n0 = u32(b >> 32) ^ c[1] ^ k[0];
    const u32 n2 = u32(a >> 32) ^ c[3] ^ k[1];
    c[1] = u32(b);
    c[3] = u32(a);
    c[0] = n0;
    c[2] = n2;
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// The random word of element `index`: word `index % 4` of block `index / 4`.
FL_HD constexpr u32 random_word(const random_key& key, u64 index) { return philox(key, index / 4).v[index % 4]; }

/// random_word(key, first + i) for i < n, both multiples of 4: eight blocks side by side, which compilers vectorize.
inline void random_words(u32* to, int n, const random_key& key, u64 first) {
  constexpr int lanes = 8;
  for (int begin = 0; begin < n; begin += 4 * lanes) {
    u32 c0[lanes], c1[lanes], c2[lanes], c3[lanes];
    for (int j = 0; j < lanes; ++j) {
      const u64 index = (first + u64(begin)) / 4 + u64(j);
      c0[j] = u32(index);
      c1[j] = u32(index >> 32) ^ (key.micro_batch << 8);
      c2[j] = key.node;
      c3[j] = u32(key.step);
    }
    u32 k0 = u32(key.seed), k1 = u32(key.seed >> 32) ^ u32(key.step >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int j = 0; j < lanes; ++j) {
        const u64 a = u64(0xD2511F53u) * c0[j];
        const u64 b = u64(0xCD9E8D57u) * c2[j];
        c0[j] = u32(b >> 32) ^ c1[j] ^ k0;
        c2[j] = u32(a >> 32) ^ c3[j] ^ k1;
        c1[j] = u32(b);
        c3[j] = u32(a);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < lanes && begin + 4 * j < n; ++j) {
      to[begin + 4 * j] = c0[j];
      to[begin + 4 * j + 1] = c1[j];
      to[begin + 4 * j + 2] = c2[j];
      to[begin + 4 * j + 3] = c3[j];
    }
  }
}

/// Uniform in [0, 1) with 24 bits, exact in fp32.
FL_HD constexpr float uniform(u32 word) { return float(word >> 8) * 0x1p-24f; }

}  // namespace fusionllm::inline v0
