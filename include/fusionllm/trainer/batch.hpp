// SPDX-License-Identifier: Apache-2.0
// A batch: named spans of the caller's memory, checked against a graph's inputs before anything reads them. Nothing
// here copies or allocates, so that a steady step may bind its batch.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "../core/error.hpp"
#include "../graph/node.hpp"

namespace fusionllm::inline v0 {

inline constexpr std::size_t max_model_inputs = 16;

namespace detail {

/// "(16, 128)", with `batch` and `time` by name.
struct shape_text {
  extents dims;
  friend std::ostream& operator<<(std::ostream& to, const shape_text& s) {
    to << '(';
    for (int i = 0; i < s.dims.rank; ++i) {
      const i64 d = s.dims.d[std::size_t(i)];
      if (i) to << ", ";
      if (d == fusionllm::batch) to << "batch";
      else if (d == fusionllm::time) to << "time";
      else to << d;
    }
    return to << ')';
  }
};

inline extents checked_extents(std::string_view name, std::initializer_list<i64> dims, std::size_t elements) {
  if (dims.size() == 0 || dims.size() > std::size_t(max_rank))
    fail(errc::model, "'", name, "' has ", dims.size(), " extents, expected 1 to ", max_rank);
  extents e;
  i64 count = 1;
  for (i64 d : dims) {
    if (d < 0) fail(errc::model, "'", name, "' has an extent of ", d, ", expected 0 or more");
    if (d > 0 && count > INT64_MAX / d) fail(errc::model, "the extents of '", name, "' multiply to more than 2^63");
    count *= d;
    e.d[std::size_t(e.rank++)] = d;
  }
  if (u64(count) != u64(elements))
    fail(errc::model, "'", name, "' has ", elements, " elements, its shape ", shape_text{e}, " holds ", count,
         ": give a span of exactly that many");
  return e;
}

}  // namespace detail

/// A tensor that is read: contiguous, last axis fastest. The memory stays the caller's.
struct input_span {
  std::string_view name;
  dtype type = dtype::f32;
  extents dims{};
  const void* data = nullptr;

  input_span() = default;
  input_span(std::string_view n, dtype t, extents e, const void* p) : name(n), type(t), dims(e), data(p) {}
  /// `values` as a tensor of shape `shape`. Errors: errc::model when they hold another number of elements.
  template <class T>
  input_span(std::string_view n, std::span<T> values, std::initializer_list<i64> shape)
      : name(n), type(dtype_of<std::remove_const_t<T>>), dims(detail::checked_extents(n, shape, values.size())),
        data(values.data()) {}
};

/// A tensor that is written.
struct output_span {
  std::string_view name;
  dtype type = dtype::f32;
  extents dims{};
  void* data = nullptr;

  output_span() = default;
  output_span(std::string_view n, dtype t, extents e, void* p) : name(n), type(t), dims(e), data(p) {}
  template <class T>
    requires(!std::is_const_v<T>)
  output_span(std::string_view n, std::span<T> values, std::initializer_list<i64> shape)
      : name(n), type(dtype_of<T>), dims(detail::checked_extents(n, shape, values.size())), data(values.data()) {}
  operator input_span() const { return {name, type, dims, data}; }
};

/// All inputs of one step, in any order: `{{"tokens", tokens, {16, 128}}, {"targets", targets, {16, 128}}}`.
class batch_view {
 public:
  batch_view(std::initializer_list<input_span> inputs) : batch_view(std::span(inputs.begin(), inputs.size())) {}
  explicit batch_view(std::span<const input_span> inputs) {
    if (inputs.size() > max_model_inputs)
      fail(errc::model, "a batch has ", inputs.size(), " inputs, expected ", max_model_inputs, " at most");
    for (const auto& i : inputs) inputs_[count_++] = i;
  }
  std::span<const input_span> inputs() const { return {inputs_.data(), count_}; }

 private:
  std::array<input_span, max_model_inputs> inputs_{};
  std::size_t count_ = 0;
};

/// A batch that fits a graph.
struct bound_batch {
  struct entry {
    int node = -1;  ///< the placeholder
    input_span input{};
  };
  sizes run{};  ///< what `batch` and `time` are in it
  std::array<entry, max_model_inputs> entries{};
  std::size_t count = 0;

  std::span<const entry> inputs() const { return {entries.data(), count}; }
  /// The data of placeholder `node`, null if the batch has none for it.
  const input_span* find(int node) const {
    for (const auto& e : inputs())
      if (e.node == node) return &e.input;
    return nullptr;
  }
};

namespace detail {

inline std::string input_names(const graph_view& g) {
  std::string names;
  for (const auto& n : g.nodes)
    if (n.op->placeholder) names += (names.empty() ? "" : ", ") + std::string(n.scope.view());
  return names;
}

/// Fixes or compares a run-time extent.
inline void match_extent(i64 found, i64 bound, bool& known, i64& value, const char* what, const input_span& input) {
  if (found < 1 || found > bound)
    fail(errc::model, "input '", input.name, "' has shape ", shape_text{input.dims}, ": its ", what, " is ", found,
         ", expected 1 to ", bound);
  if (known && value != found)
    fail(errc::model, "input '", input.name, "' has shape ", shape_text{input.dims}, ": its ", what, " is ", found,
         ", that of the inputs before it is ", value);
  known = true;
  value = found;
}

inline void match_input(const input_span& input, const node& n, dtype expected, const sizes& bound, bool (&known)[2],
                        sizes& run) {
  if (input.type != expected)
    fail(errc::model, "input '", input.name, "' is ", name_of(input.type), ", the model expects ", name_of(expected));
  bool fits = input.dims.rank == n.out.rank;
  for (int axis = 0; fits && axis < n.out.rank; ++axis) {
    const i64 want = n.out.d[std::size_t(axis)], found = input.dims.d[std::size_t(axis)];
    if (want == fusionllm::batch) match_extent(found, bound.batch, known[0], run.batch, "batch", input);
    else if (want == fusionllm::time) match_extent(found, bound.time, known[1], run.time, "time", input);
    else fits = want == found;
  }
  if (!fits)
    fail(errc::model, "input '", input.name, "' has shape ", shape_text{input.dims}, ", the model expects ",
         shape_text{n.out});
  if (!input.data) fail(errc::model, "input '", input.name, "' has no data: its pointer is null");
  if (reinterpret_cast<std::uintptr_t>(input.data) % size_of(expected) != 0)
    fail(errc::model, "the data of input '", input.name, "' is not aligned to its elements of ", size_of(expected),
         " bytes");
}

}  // namespace detail

/// Checks names, element types and shapes. `needed` limits the placeholders that must be there (an inference slice);
/// empty: all. `precision` is what the model's `real` is, `bound` the largest batch and time of the run. Extents that no
/// input fixes are those of `bound`.
/// Errors: errc::model, naming the input, what was found and what is expected.
inline bound_batch bind(const batch_view& given, const graph_view& g, dtype precision, const sizes& bound,
                        std::span<const u8> needed = {}) {
  bound_batch b;
  b.run = bound;
  bool known[2] = {};
  for (const auto& input : given.inputs()) {
    int at = -1;
    for (int i = 0; i < g.size() && at < 0; ++i)
      if (g.nodes[std::size_t(i)].op->placeholder && g.nodes[std::size_t(i)].scope.view() == input.name) at = i;
    if (at < 0)
      fail(errc::model, "the batch has an input '", input.name, "', the model has ", detail::input_names(g));
    if (b.find(at)) fail(errc::model, "the batch has input '", input.name, "' twice: give each once");
    const node& n = g.nodes[std::size_t(at)];
    detail::match_input(input, n, n.type == element::i32 ? dtype::int32 : precision, bound, known, b.run);
    b.entries[b.count++] = {at, input};
  }
  for (int i = 0; i < g.size(); ++i) {
    const node& n = g.nodes[std::size_t(i)];
    if (!n.op->placeholder || (!needed.empty() && !needed[std::size_t(i)]) || b.find(i)) continue;
    fail(errc::model, "the batch has no input '", n.scope.view(), "': the model expects it with shape ",
         detail::shape_text{n.out});
  }
  return b;
}

}  // namespace fusionllm::inline v0
