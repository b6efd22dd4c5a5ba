// SPDX-License-Identifier: Apache-2.0
// The loss on held-out data. Each row counts once: of a batch that repeats others to be full, only the rows before; of a
// row, the terms that the loss counts.
#pragma once

#include "data_buffers.hpp"
#include "model_outputs.hpp"

namespace fusionllm::inline v0 {

struct held_out_loss {
  double loss = 0;  ///< the mean over the terms that count, whatever the batches
  i64 rows = 0;     ///< 0: nothing is held out, or none was asked for
};

/// Of the first `most` held-out batches of `data`, each of which `also` sees. `buffers` hold a batch of it. Errors: model;
/// those of the source.
template <class Also>
held_out_loss evaluate_held_out(model_outputs& m, const data_source& data, data_buffers& buffers, i64 most, Also&& also) {
  held_out_loss r;
  double sum = 0, terms = 0;
  for (i64 b = 0; b < (std::min)(most, data.validation_batches()); ++b) {
    const i64 rows = data.validation_rows(b);
    buffers.fill_validation(data, b, 0, rows);
    const auto loss = m.evaluate_terms(buffers.batch(rows));
    sum += double(loss.terms) * loss.mean;
    terms += double(loss.terms);
    r.rows += rows;
    also(buffers.batch(rows));
  }
  if (terms > 0) r.loss = sum / terms;
  return r;
}
inline held_out_loss evaluate_held_out(model_outputs& m, const data_source& data, data_buffers& buffers, i64 most) {
  return evaluate_held_out(m, data, buffers, most, [](const batch_view&) {});
}

}  // namespace fusionllm::inline v0
