// SPDX-License-Identifier: Apache-2.0
// Next-token samples from a file of tokens. The last tenth is held out; a sample is `time` + 1 tokens from any position
// of the rest, of which the first `time` are inputs and the last `time` targets.
#pragma once

#include <algorithm>
#include <cstring>

#include "data.hpp"
#include "data_file.hpp"
#include "sampler.hpp"

namespace fusionllm::inline v0 {

struct text_options {
  i64 time = 128;        ///< tokens of a sample
  i64 rows = 16;         ///< samples of a step
  u64 seed = 1;          ///< of the order of samples
  i64 stride = 1;        ///< tokens between the starts of samples
  std::string tokens = "tokens";    ///< the model's input
  std::string targets = "targets";  ///< the model's target, absent in a model that has none
};

/// Samples from `File`, which has tokens by position and knows their count, format and digest.
template <class File>
class next_token_data final : public data_source {
 public:
  /// Errors: errc::data when the file does not hold one sample; errc::config when an option is out of range.
  next_token_data(File file, text_options options) : file_(std::move(file)), options_(std::move(options)) {
    if (options_.time < 1) fail(errc::config, "time is ", options_.time, ", expected 1 or more");
    if (options_.stride < 1) fail(errc::config, "stride is ", options_.stride, ", expected 1 or more");
    const i64 needed = options_.time + 1;
    if (file_.count() < needed)
      fail(errc::data, "data file '", file_.path(), "' holds ", file_.count(), " tokens (", file_.byte_count(),
           " bytes of ", name_of(file_.format()), "), expected ", needed, " or more (time + 1): use more data or a smaller time");
    const i64 held_out = file_.count() / 10;
    train_ = held_out >= needed && file_.count() - held_out >= needed ? file_.count() - held_out : file_.count();
    sampler_ = sampler(options_.seed, (train_ - needed) / options_.stride + 1, options_.rows);
  }

  i64 batch() const override { return options_.rows; }
  const File& file() const { return file_; }
  const sampler& order() const { return sampler_; }
  /// Tokens [0, train_tokens()) are trained on, the others are held out; a file too short to hold out a sample is
  /// trained on as a whole.
  i64 train_tokens() const { return train_; }
  i64 validation_tokens() const { return file_.count() - train_; }
  /// Held-out samples, which do not overlap but for the token that is the last target of one and the first of the next.
  i64 validation_samples() const { return validation_tokens() > 0 ? (validation_tokens() - 1) / options_.time : 0; }
  /// The last batch holds what is left; its other rows begin again.
  i64 validation_batches() const override { return (validation_samples() + options_.rows - 1) / options_.rows; }
  i64 validation_rows(i64 index) const override {
    return (std::min)(options_.rows, validation_samples() - index * options_.rows);
  }

  void fill(u64 step, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    check_rows(begin, end);
    for (i64 row = begin; row < end; ++row)
      write(sampler_.sample(step, row) * options_.stride, row - begin, end - begin, inputs);
  }
  void fill_validation(i64 index, i64 begin, i64 end, std::span<const output_span> inputs) const override {
    check_rows(begin, end);
    if (index < 0 || index >= validation_batches())
      fail(errc::data, "validation batch ", index, " of data file '", file_.path(), "', which has ",
           validation_batches());
    for (i64 row = begin; row < end; ++row) {
      const i64 sample = (index * options_.rows + row) % validation_samples();
      write(train_ + sample * options_.time, row - begin, end - begin, inputs);
    }
  }

  u64 digest() const override { return file_.digest(); }
  std::string describe() const override {
    return file_.path() + ": " + std::to_string(train_) + " tokens to train on, " + std::to_string(validation_tokens())
           + " held out";
  }

 private:
  void check_rows(i64 begin, i64 end) const {
    if (begin < 0 || end < begin || end > options_.rows)
      fail(errc::data, "rows ", begin, " to ", end, " of a batch of ", options_.rows);
  }

  void write(i64 start, i64 row, i64 rows, std::span<const output_span> inputs) const {
    for (const auto& input : inputs) {
      const bool is_target = input.name == options_.targets;
      if (!is_target && input.name != options_.tokens)
        fail(errc::model, "the model has an input '", input.name, "', text has '", options_.tokens, "' and '",
             options_.targets, "': rename the input, or give the trainer a data source of your own");
      const extents expected{2, {rows, options_.time}};
      if (input.type != dtype::int32 || input.dims != expected)
        fail(errc::model, "input '", input.name, "' is ", name_of(input.type), " ", detail::shape_text{input.dims},
             ", text fills int32 ", detail::shape_text{expected});
      auto* to = static_cast<char*>(input.data) + row * options_.time * 4;
      for (i64 t = 0; t < options_.time; ++t) {
        const auto token = std::int32_t(file_[start + t + is_target]);
        std::memcpy(to + 4 * t, &token, 4);
      }
    }
  }

  File file_;
  text_options options_;
  i64 train_ = 0;
  sampler sampler_{0, 1, 1};
};

/// From a text, or raw integers, in memory.
using text_data = next_token_data<token_file>;

}  // namespace fusionllm::inline v0
