// SPDX-License-Identifier: Apache-2.0
// How often a model's likeliest class is the label: of models with an output "logits" (batch, classes) whose loss has an
// input of labels, i32 (batch), as "labels" or "targets".
#pragma once

#include <cmath>
#include <vector>

#include "../graph/graph.hpp"
#include "batch.hpp"

namespace fusionllm::inline v0 {

/// What there is to count: the labels' name and the number of classes; 0 of a model without.
struct labelled_classes {
  std::string_view labels{};
  i64 classes = 0;
};
inline labelled_classes labelled_classes_of(const graph_view& g) {
  labelled_classes r;
  const int logits = find_output(g, "logits");
  if (logits < 0) return r;
  const extents& e = g.nodes[std::size_t(logits)].out;
  if (e.rank != 2 || e.d[0] != fusionllm::batch || e.d[1] < 1) return r;
  for (int i : g.nodes[std::size_t(g.loss)].in) {
    if (i < 0) continue;
    const node& n = g.nodes[std::size_t(i)];
    if (n.op->placeholder && n.type == element::i32 && n.out.rank == 1) r = {n.scope.view(), e.d[1]};
  }
  return r;
}

/// Of a `basic_trainer` or `model_outputs`.
template <class Model>
class label_accuracy {
 public:
  explicit label_accuracy(Model& t) : trainer_(t), labels_(labelled_classes_of(t.graph()).labels), classes_(labelled_classes_of(t.graph()).classes) {}

  /// Whether the model has such outputs and labels.
  bool applies() const { return classes_ > 0; }

  /// Counts a batch, which has the labels. Errors: errc::data when a label is outside the classes; errc::model.
  void add(const batch_view& b) {
    if (trainer_.real_type() == dtype::f64) count<double>(b);
    else count<float>(b);
  }

  i64 rows() const { return rows_; }
  i64 hits() const { return hits_; }
  /// Hits of all rows, from 0 to 1; NaN before any.
  double value() const { return rows_ > 0 ? double(hits_) / double(rows_) : std::nan(""); }

 private:
  template <class T>
  void count(const batch_view& b) {
    for (const input_span& labels : b.inputs()) {
      if (labels.name != labels_) continue;
      const i64 rows = labels.dims.d[0];
      std::vector<T> logits(std::size_t(rows * classes_));
      trainer_.predict(b, {"logits", std::span<T>(logits), {rows, classes_}});
      for (i64 r = 0; r < rows; ++r) {
        const auto label = static_cast<const std::int32_t*>(labels.data)[r];
        if (label < 0 || label >= classes_)
          fail(errc::data, "the label of row ", r, " is ", label, ", the model has classes 0 to ", classes_ - 1);
        hits_ += is_largest(logits.data() + r * classes_, label);
      }
      rows_ += rows;
    }
  }
  // Of equal logits the first is the likeliest; where one is not a number, none is.
  template <class T>
  bool is_largest(const T* row, i64 label) const {
    for (i64 c = 0; c < classes_; ++c)
      if (c < label ? !(row[c] < row[label]) : !(row[c] <= row[label])) return false;
    return true;
  }

  Model& trainer_;
  std::string_view labels_;
  i64 classes_, rows_ = 0, hits_ = 0;
};

}  // namespace fusionllm::inline v0
