// SPDX-License-Identifier: Apache-2.0
// What peers of a run say to each other beside tensors of cut edges. Payloads are little-endian, fields in order.
#pragma once

#include <vector>

#include "../core/bytes.hpp"
#include "../transport/frame.hpp"

namespace fusionllm::inline v0 {

/// To the leader, at the end of a peer's backward work.
inline constexpr frame_kind summary_kind{u16(frame_kind::custom)};
/// From the leader: how everyone updates.
inline constexpr frame_kind verdict_kind{u16(frame_kind::custom) + 1};

/// A `gradient` frame has the parameter in `edge` and this in `micro_batch`.
constexpr u32 gradient_slot(int use, bool total) { return u32(use) * 2 + total; }

/// One value that a peer adds to the sums of the whole run: of a parameter (its gradient's sum of squares) or of a
/// micro-batch (its loss).
struct summand {
  u32 index = 0;
  double value = 0;
};

struct step_summary {
  std::vector<summand> squares;  ///< by parameter
  std::vector<summand> losses;   ///< by micro-batch

  static constexpr std::size_t bytes(std::size_t values) { return 8 + 12 * values; }
  void encode(std::vector<std::byte>& out) const {
    out.resize(bytes(squares.size() + losses.size()));
    std::byte* p = out.data();
    store_little(p, u32(squares.size()));
    store_little(p + 4, u32(losses.size()));
    p += 8;
    for (const auto* list : {&squares, &losses})
      for (const summand& s : *list) {
        store_little(p, s.index);
        store_little(p + 4, std::bit_cast<u64>(s.value));
        p += 12;
      }
  }
  /// Errors: protocol, for bytes that are not a summary.
  static void check(std::span<const std::byte> in) {
    if (in.size() < 8) fail(errc::protocol, "a step summary has ", in.size(), " bytes, expected 8 or more");
    const u64 n = load_little<u32>(in.data()), m = load_little<u32>(in.data() + 4);
    if (in.size() != 8 + 12 * (n + m))
      fail(errc::protocol, "a step summary of ", n, " + ", m, " values has ", in.size(), " bytes, expected ", 8 + 12 * (n + m));
  }
  /// Errors: protocol.
  void decode(std::span<const std::byte> in) {
    check(in);
    const u64 n = load_little<u32>(in.data()), m = load_little<u32>(in.data() + 4);
    const std::byte* p = in.data() + 8;
    for (auto [list, count] : {std::pair{&squares, n}, std::pair{&losses, m}}) {
      list->clear();
      for (u64 i = 0; i < count; ++i, p += 12)
        list->push_back({load_little<u32>(p), std::bit_cast<double>(load_little<u64>(p + 4))});
    }
  }
};

struct step_verdict {
  double loss = 0;             ///< of the whole batch, in nats or what the loss is
  double gradient_norm = 0;    ///< of all parameters together, before clipping
  double gradient_scale = 1;   ///< to apply
  bool skipped = false;        ///< the gradient was not finite: nobody updates

  static constexpr std::size_t bytes = 32;
  void encode(std::vector<std::byte>& out) const {
    out.resize(bytes);
    store_little(out.data(), std::bit_cast<u64>(loss));
    store_little(out.data() + 8, std::bit_cast<u64>(gradient_norm));
    store_little(out.data() + 16, std::bit_cast<u64>(gradient_scale));
    store_little(out.data() + 24, u64(skipped));
  }
  void decode(std::span<const std::byte> in) {
    if (in.size() != bytes) fail(errc::protocol, "a step verdict has ", in.size(), " bytes, expected ", bytes);
    loss = std::bit_cast<double>(load_little<u64>(in.data()));
    gradient_norm = std::bit_cast<double>(load_little<u64>(in.data() + 8));
    gradient_scale = std::bit_cast<double>(load_little<u64>(in.data() + 16));
    skipped = load_little<u64>(in.data() + 24) != 0;
  }
};

}  // namespace fusionllm::inline v0
