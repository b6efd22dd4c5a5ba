// SPDX-License-Identifier: Apache-2.0
// What peers of a run say to each other beside tensors of cut edges. Payloads are little-endian, fields in order.
#pragma once

#include <vector>

#include "../core/bytes.hpp"
#include "../transport/frame.hpp"
#include "fault.hpp"
#include "skipping.hpp"

namespace fusionllm::inline v0 {

/// To the leader, at the end of a peer's backward work.
inline constexpr frame_kind summary_kind{u16(frame_kind::custom)};
/// From the leader: how everyone updates.
inline constexpr frame_kind verdict_kind{u16(frame_kind::custom) + 1};

/// A frame of a tensor or a gradient without payload: what was to be sent is not finite. The receiver takes zeros, its
/// summary says so, and the step will be skipped.
constexpr bool is_poisoned(const frame_header& h) { return h.total_length == 0; }

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
  fault first;                   ///< of those that this peer knows of

  /// Without a fault, which comes last where there is one.
  static constexpr std::size_t bytes(std::size_t values) { return 8 + 12 * values; }
  void encode(std::vector<std::byte>& out) const {
    const std::size_t plain = bytes(squares.size() + losses.size());
    out.resize(first ? plain + fault::bytes : plain);
    if (first) first.encode(out.data() + plain);
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
    if (in.size() != bytes(n + m) && in.size() != bytes(n + m) + fault::bytes)
      fail(errc::protocol, "a step summary of ", n, " + ", m, " values has ", in.size(), " bytes, expected ", bytes(n + m));
  }
  /// Errors: protocol.
  void decode(std::span<const std::byte> in) {
    check(in);
    const u64 n = load_little<u32>(in.data()), m = load_little<u32>(in.data() + 4);
    first = in.size() > bytes(n + m) ? fault::decode(in.data() + bytes(n + m)) : fault{};
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
  bool skipped = false;        ///< nobody updates
  skip_reason reason = skip_reason::none;
  double mean_loss = 0;        ///< of the last accepted steps, where it was a spike
  fault first;                 ///< where it was not finite

  static constexpr std::size_t bytes = 32, skipped_bytes = 40 + fault::bytes;
  void encode(std::vector<std::byte>& out) const {
    out.resize(skipped ? skipped_bytes : bytes);
    store_little(out.data(), std::bit_cast<u64>(loss));
    store_little(out.data() + 8, std::bit_cast<u64>(gradient_norm));
    store_little(out.data() + 16, std::bit_cast<u64>(gradient_scale));
    store_little(out.data() + 24, u32(skipped));
    store_little(out.data() + 28, u32(reason));
    if (!skipped) return;
    store_little(out.data() + 32, std::bit_cast<u64>(mean_loss));
    first.encode(out.data() + 40);
  }
  void decode(std::span<const std::byte> in) {
    if (in.size() != bytes && in.size() != skipped_bytes)
      fail(errc::protocol, "a step verdict has ", in.size(), " bytes, expected ", bytes, ", or ", skipped_bytes, " for a skipped step");
    loss = std::bit_cast<double>(load_little<u64>(in.data()));
    gradient_norm = std::bit_cast<double>(load_little<u64>(in.data() + 8));
    gradient_scale = std::bit_cast<double>(load_little<u64>(in.data() + 16));
    skipped = in.size() == skipped_bytes;
    if (skipped != (load_little<u32>(in.data() + 24) != 0)) fail(errc::protocol, "a step verdict of ", in.size(), " bytes says that its step was ", skipped ? "not " : "", "skipped");
    reason = skip_reason::none;
    mean_loss = 0;
    first = {};
    if (!skipped) return;
    const u32 why = load_little<u32>(in.data() + 28);
    reason = why <= u32(skip_reason::loss_spike) ? skip_reason(why) : skip_reason::not_finite;
    mean_loss = std::bit_cast<double>(load_little<u64>(in.data() + 32));
    first = fault::decode(in.data() + 40);
  }
};

/// What ends a run in which too many steps were skipped, `step` (counted from 1) being the last.
inline error diverged(u64 step, const loss_history& h, const std::string& reason) {
  return error(errc::diverged, std::to_string(h.skipped_in_row()) + " steps in a row were skipped, the last of them step " +
                                   std::to_string(step) + " because " + reason +
                                   ": go on from the last checkpoint with a lower learning_rate, or raise max_skipped");
}

/// Why a step was skipped, as the end of a sentence; empty if it was not.
inline std::string reason_of(const step_verdict& v, const graph_view& g, const plan& p, const std::vector<std::string>& names = {}) {
  if (!v.skipped) return {};
  std::ostringstream s;
  s.precision(6);
  if (v.reason == skip_reason::loss_spike) s << "its loss " << v.loss << " is a spike, the mean of the steps before is " << v.mean_loss;
  else if (v.first) s << describe(v.first, g, p, names) << " is not finite";
  else s << "its loss or the norm of its gradient is not finite";
  return std::move(s).str();
}

}  // namespace fusionllm::inline v0
