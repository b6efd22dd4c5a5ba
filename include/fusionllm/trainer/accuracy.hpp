// SPDX-License-Identifier: Apache-2.0
// How often a model's likeliest class is the label: of models with an output "logits" (batch, classes) whose loss has an
// input of labels, i32 (batch), as "labels" or "targets". Rows whose label the loss ignores do not count.
#pragma once

#include <cmath>
#include <vector>

#include "model_outputs.hpp"

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

class label_accuracy {
 public:
  explicit label_accuracy(model_outputs& m) : model_(m), labels_(labelled_classes_of(m.graph()).labels), classes_(labelled_classes_of(m.graph()).classes) {}

  /// Whether the model has such outputs and labels.
  bool applies() const { return classes_ > 0; }

  /// Counts a batch, which has the labels, of rows whose label counts. Errors: errc::data when a label is outside the classes; errc::model.
  void add(const batch_view& b) {
    const dtype real = model_.real_type();
    const graph_view& g = model_.graph();
    const node& loss = g.nodes[std::size_t(g.loss)];
    for (const input_span& labels : b.inputs()) {
      if (labels.name != labels_) continue;
      const extents all{2, {labels.dims.d[0], classes_}};
      memory_.resize(std::size_t(all.count()) * size_of(real));
      model_.predict(b, output_span("logits", real, all, memory_.data()));
      for (i64 r = 0; r < all.rows(); ++r) {
        const auto label = static_cast<const std::int32_t*>(labels.data)[r];
        if (loss.op->is_no_place(loss.attr, label)) continue;
        if (label < 0 || label >= classes_)
          fail(errc::data, "the label of row ", r, " is ", label, ", the model has classes 0 to ", classes_ - 1);
        hits_ += is_largest(r, label);
        ++rows_;
      }
    }
  }

  i64 rows() const { return rows_; }
  i64 hits() const { return hits_; }
  /// Hits of the counted rows, from 0 to 1; NaN before any.
  double value() const { return rows_ > 0 ? double(hits_) / double(rows_) : std::nan(""); }

 private:
  // Of equal logits the first is the likeliest; where one is not a number, none is.
  bool is_largest(i64 row, i64 label) const {
    const auto logit = [&](i64 c) { return detail::real_element(memory_.data(), model_.real_type(), row * classes_ + c); };
    const double own = logit(label);
    for (i64 c = 0; c < classes_; ++c)
      if (c < label ? !(logit(c) < own) : !(logit(c) <= own)) return false;
    return true;
  }

  model_outputs& model_;
  std::string_view labels_;
  i64 classes_, rows_ = 0, hits_ = 0;
  std::vector<std::byte> memory_;  ///< of logits
};

}  // namespace fusionllm::inline v0
