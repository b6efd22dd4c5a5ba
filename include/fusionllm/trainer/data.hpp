// SPDX-License-Identifier: Apache-2.0
// What a run trains on. A source is asked for rows of a step and writes them into memory that the run owns; the same
// question has the same answer on every peer and at any time, so that a step can be repeated and a run resumed.
#pragma once

#include <span>
#include <string>

#include "batch.hpp"

namespace fusionllm::inline v0 {

class data_source {
 public:
  virtual ~data_source() = default;

  /// Rows in the batch of one step.
  virtual i64 batch() const = 0;

  /// Writes rows [row_begin, row_end) of the batch of `step`. Each of `inputs` is one input of the model, named, its first
  /// extent row_end - row_begin. Safe to call from several threads.
  /// Errors: errc::model when an input is not what this source has.
  virtual void fill(u64 step, i64 row_begin, i64 row_end, std::span<const output_span> inputs) const = 0;

  /// Held-out batches, each of `batch()` rows; 0: none.
  virtual i64 validation_batches() const { return 0; }
  /// Those of its rows that count, 1 or more: the last batch may repeat samples in the others.
  virtual i64 validation_rows(i64 index) const { return (void)index, batch(); }
  /// The number of such a row's sample among all that are held out.
  virtual i64 validation_sample(i64 index, i64 row) const { return index * batch() + row; }
  /// As `fill`, from the held-out part; index < validation_batches().
  virtual void fill_validation(i64 index, i64 row_begin, i64 row_end, std::span<const output_span> inputs) const {
    (void)row_begin, (void)row_end, (void)inputs;
    fail(errc::data, "validation batch ", index, " of data that holds none");
  }

  /// What people call a class of its labels; empty: no name is known.
  virtual std::string class_name(i64 label) const { return (void)label, std::string(); }
  /// The file that a held-out sample is; empty: it has none of its own.
  virtual std::string validation_file(i64 sample) const { return (void)sample, std::string(); }

  /// Of the content; peers of one run must agree on it.
  virtual u64 digest() const = 0;
  /// One line for people.
  virtual std::string describe() const = 0;
};

}  // namespace fusionllm::inline v0
