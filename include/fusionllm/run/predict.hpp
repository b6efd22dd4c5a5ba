// SPDX-License-Identifier: Apache-2.0
// `predict`: what a trained model says of each held-out sample, a JSON line each: class and probability of a model with
// "logits" (batch, classes), the values themselves of every other output.
#pragma once

#include <cmath>

#include "../trainer/data_buffers.hpp"
#include "../trainer/json_text.hpp"
#include "open_data.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// The node of an output that has a row a sample. Errors: model.
inline int predicted_node(const graph_view& g, const std::string& name) {
  const int at = find_output(g, name);
  if (at < 0) fail(errc::model, "the model has no output '", name, "': `graph` lists them");
  const extents& e = g.nodes[std::size_t(at)].out;
  bool a_sample = e.rank > 0 && e.d[0] == batch;
  for (int axis = 1; axis < e.rank; ++axis) a_sample &= e.d[std::size_t(axis)] > 0;
  if (!a_sample)
    fail(errc::model, "output '", name, "' has shape ", shape_text{e}, ": predict writes a line a sample; for text use generate");
  return at;
}

/// Of a `basic_trainer` or `model_outputs`.
template <class Model>
class prediction_lines {
 public:
  prediction_lines(Model& t, std::string name, std::FILE* out)
      : trainer_(t), name_(std::move(name)), out_(out), shape_(t.graph().nodes[std::size_t(predicted_node(t.graph(), name_))].out),
        classes_(name_ == "logits" && shape_.rank == 2) {}
  void add(const batch_view& b, const sizes& s) { trainer_.real_type() == dtype::f64 ? rows<double>(b, s) : rows<float>(b, s); }

 private:
  template <class T>
  void rows(const batch_view& b, const sizes& s) {
    const extents all = shape_.resolve(s);
    std::vector<T> values(std::size_t(all.count()));
    trainer_.predict(b, output_span(name_, dtype_of<T>, all, values.data()));
    const std::size_t width = values.size() / std::size_t(s.batch);
    for (i64 r = 0; r < s.batch; ++r, ++row_) {
      const std::span<const T> row(values.data() + std::size_t(r) * width, width);
      json_text j;
      j.begin_object().field("row", row_);
      if (classes_) add_class(j, row);
      else {
        j.key("values").begin_array();
        for (T x : row) j.value(double(x));
        j.end_array();
      }
      j.end_object();
      std::fprintf(out_, "%s\n", j.text().c_str());
    }
  }
  template <class T>
  static void add_class(json_text& j, std::span<const T> logits) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < logits.size(); ++c)
      if (logits[c] > logits[best]) best = c;
    double sum = 0;
    for (T x : logits) sum += std::exp(double(x) - double(logits[best]));
    j.field("class", i64(best)).field("probability", 1 / sum);
  }

  Model& trainer_;
  std::string name_;
  std::FILE* out_;
  extents shape_;
  bool classes_;
  i64 row_ = 0;
};

}  // namespace detail

inline int predict_command(const command_call& call) {
  const run_config& c = call.config;
  const auto data = open_data(call);
  i64 batches = data->validation_batches();
  if (c.validation_batches > 0) batches = (std::min)(batches, c.validation_batches);
  if (batches == 0) fail(errc::data, data->describe(), ": nothing is held out to predict");
  const trained t = open_trained(call, {c.batch, c.time}, {whole_output(c, detail::predicted_node(call.model.graph, call.options.output_name))});
  data_buffers buffers(call.model.graph, t.model->real_type(), {c.batch, c.time});
  detail::prediction_lines lines(*t.model, call.options.output_name, call.out);
  for (i64 b = 0; b < batches; ++b) {
    const i64 n = data->validation_rows(b);
    buffers.fill_validation(*data, b, 0, n);
    lines.add(buffers.batch(n), {n, c.time});
  }
  return 0;
}

}  // namespace fusionllm::inline v0
