// SPDX-License-Identifier: Apache-2.0
// The losses of earlier steps in a checkpoint, by which a resumed run skips the same steps as one that was never stopped.
#pragma once

#include "../runtime/skipping.hpp"
#include "checkpoint_reader.hpp"
#include "checkpoint_writer.hpp"

namespace fusionllm::inline v0 {

namespace detail {
inline constexpr std::string_view history_record = ":losses";  ///< no parameter is called so
inline constexpr extents history_shape{1, {i64(loss_history::numbers_kept)}};
}  // namespace detail

/// Errors: those of the writer.
inline void write_history(checkpoint_writer& w, const loss_history& h) {
  const loss_history::state s = h.numbers();
  w.add<double>(detail::history_record, detail::history_shape, s);
}

/// An empty one where the checkpoint has none (imported weights, a checkpoint of an earlier version). Errors: checkpoint.
inline loss_history read_history(const checkpoint_reader& r) {
  if (!r.find(detail::history_record)) return {};
  loss_history::state s{};
  r.read(detail::history_record, dtype::f64, detail::history_shape, std::as_writable_bytes(std::span(s)));
  return loss_history::from(s, errc::checkpoint);
}

}  // namespace fusionllm::inline v0
