// SPDX-License-Identifier: Apache-2.0
// Memory for the inputs of a model: one block an input, for the largest batch, filled by a data source.
#pragma once

#include <memory>

#include "data.hpp"

namespace fusionllm::inline v0 {

class data_buffers {
 public:
  /// For batches of at most `bound`. `precision` is what `real` is. Errors: errc::model when the model has too many inputs.
  data_buffers(const graph_view& g, dtype precision, const sizes& bound) : bound_(bound) {
    for (int i = 0; i < g.size(); ++i)
      if (g.nodes[std::size_t(i)].op->placeholder) add(g, i, precision);
  }
  /// The same for some of the inputs.
  data_buffers(const graph_view& g, dtype precision, const sizes& bound, std::span<const int> nodes) : bound_(bound) {
    for (int i : nodes) add(g, i, precision);
  }

  /// Rows [begin, end) of the batch of `step`, at their places. Errors: those of the source.
  void fill(const data_source& from, u64 step, i64 begin, i64 end) {
    std::array<output_span, max_model_inputs> spans;
    from.fill(step, begin, end, rows(begin, end, spans));
  }
  void fill_validation(const data_source& from, i64 index, i64 begin, i64 end) {
    std::array<output_span, max_model_inputs> spans;
    from.fill_validation(index, begin, end, rows(begin, end, spans));
  }

  /// The first `count` rows as a batch.
  batch_view batch(i64 count) const {
    std::array<input_span, max_model_inputs> spans;
    for (std::size_t i = 0; i < count_; ++i)
      spans[i] = {inputs_[i].name, inputs_[i].type, inputs_[i].shape.resolve({count, bound_.time}), inputs_[i].memory.get()};
    return batch_view(std::span<const input_span>(spans.data(), count_));
  }
  /// The memory of placeholder `node`, for all rows.
  const void* of_node(int node) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (inputs_[i].node == node) return inputs_[i].memory.get();
    return nullptr;
  }

 private:
  struct one {
    int node = -1;
    std::string_view name;
    dtype type = dtype::f32;
    extents shape{};
    std::unique_ptr<std::byte[]> memory;
  };

  void add(const graph_view& g, int i, dtype precision) {
    const node& n = g.nodes[std::size_t(i)];
    if (count_ == max_model_inputs) fail(errc::model, "the model has more than ", max_model_inputs, " inputs");
    const dtype type = n.type == element::i32 ? dtype::int32 : precision;
    const u64 bytes = u64(n.out.resolve(bound_).count()) * size_of(type);
    inputs_[count_++] = {i, n.scope.view(), type, n.out, std::make_unique<std::byte[]>(std::size_t(bytes))};
  }

  std::span<const output_span> rows(i64 begin, i64 end, std::array<output_span, max_model_inputs>& to) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const one& x = inputs_[i];
      const i64 row_bytes = x.shape.resolve({1, bound_.time}).count() * i64(size_of(x.type));
      to[i] = {x.name, x.type, x.shape.resolve({end - begin, bound_.time}), x.memory.get() + begin * row_bytes};
    }
    return {to.data(), count_};
  }

  sizes bound_;
  std::array<one, max_model_inputs> inputs_;
  std::size_t count_ = 0;
};

}  // namespace fusionllm::inline v0
