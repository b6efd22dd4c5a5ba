// SPDX-License-Identifier: Apache-2.0
// Forward masks: the matrix that their entries form, and masks within masks. The entries of an even mask keep their
// rows, so that selection by token means the same on the way back.
#pragma once

#include "../core/error.hpp"
#include "tensor.hpp"

namespace fusionllm::inline v0::detail {

/// Whether there is a forward mask that leaves anything out.
inline bool restricts(const link_context& context) { return context.forward != nullptr && !context.forward->all; }

/// Extents, limits and the forward mask fit each other; nothing is allocated before. O(1): the mask's positions are
/// those that an encode or decode made.
inline void check_extents(i64 rows, i64 columns, const codec_limits& limits, const link_context& context) {
  constexpr i64 side = 0xFFFFFFFF;
  if (rows < 0 || columns < 0 || rows > side || columns > side)
    fail(errc::model, "a tensor of ", rows, " x ", columns, " to send: extents are 0 to ", side);
  const i64 most = limits.max_elements < side ? limits.max_elements : side;
  if (columns != 0 && rows > most / columns)
    fail(errc::resource, "a tensor of ", rows, " x ", columns, " to send: ", most,
         " entries are the limit; use smaller micro-batches");
  const mask* m = context.forward;
  if (m != nullptr && (m->rows != rows || m->columns != columns))
    fail(errc::model, "a forward mask of ", m->rows, " x ", m->columns, " for a tensor of ", rows, " x ", columns,
         ": pass the mask that the forward frame of this edge made");
  if (m != nullptr && !m->all && !m->positions.empty() && i64(m->positions.back()) >= rows * columns)
    fail(errc::model, "a forward mask keeps entry ", m->positions.back(), " of a tensor of ", rows * columns);
}

/// The matrix that `count` entries of a mask form.
inline matrix_extent masked_extent(i64 rows, i64 whole, i64 count, bool even) {
  if (even && rows > 0 && count % rows == 0) return {rows, count / rows, whole};
  return {1, count, whole};
}

inline matrix_extent extent_within(i64 rows, i64 columns, const mask* forward) {
  if (forward == nullptr || forward->all) return {rows, columns, rows * columns};
  return masked_extent(rows, rows * columns, forward->count(), forward->per_row > 0);
}

/// out = the entries of `outer` (null: all) that `inner`, a mask of their matrix, keeps.
inline void compose(i64 rows, i64 columns, const mask* outer, const mask& inner, mask& out) {
  if (outer == nullptr || outer->all) {
    if (inner.all) return out.keep_all(rows, columns);
    if (&out != &inner) out = inner;
    return;
  }
  if (inner.all) {
    if (&out != outer) out = *outer;
    return;
  }
  out.per_row = outer->per_row > 0 ? inner.per_row : 0;
  out.rows = rows;
  out.columns = columns;
  out.all = false;
  const std::size_t count = inner.positions.size();  // ascending and inside: in place is safe when out is outer
  if (&out != outer) out.positions.resize(count);
  for (std::size_t i = 0; i < count; ++i) out.positions[i] = outer->positions[inner.positions[i]];
  out.positions.resize(count);
}

}  // namespace fusionllm::inline v0::detail
