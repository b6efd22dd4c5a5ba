// SPDX-License-Identifier: Apache-2.0
// `predict`: what a trained model says of each held-out sample, a JSON line each: its file and label where the data has
// them, then class and probability of a model with "logits" (batch, classes), or the values of another output.
#pragma once

#include <cmath>

#include "../trainer/accuracy.hpp"
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

class prediction_lines {
 public:
  prediction_lines(model_outputs& m, const data_source& from, std::string name, std::FILE* out)
      : model_(m), data_(from), name_(std::move(name)), out_(out), shape_(m.graph().nodes[std::size_t(predicted_node(m.graph(), name_))].out),
        classes_(name_ == "logits" && shape_.rank == 2), labels_(labelled_classes_of(m.graph()).labels) {}
  /// `sample(r)`: the number of row r's sample.
  template <class Sample>
  void add(const batch_view& b, const sizes& s, const Sample& sample) {
    const extents all = shape_.resolve(s);
    const dtype real = model_.real_type();
    memory_.resize(std::size_t(all.count()) * size_of(real));
    model_.predict(b, output_span(name_, real, all, memory_.data()));
    row_values_.resize(std::size_t(all.count() / s.batch));
    i64 at = 0;
    for (i64 r = 0; r < s.batch; ++r) {
      for (double& x : row_values_) x = real_element(memory_.data(), real, at++);
      json_text j;
      j.begin_object().field("row", i64(sample(r)));
      if (const std::string file = data_.validation_file(sample(r)); !file.empty()) j.field("file", std::string_view(file));
      for (const input_span& i : b.inputs())
        if (i.name == labels_) add_class(j, "label", static_cast<const std::int32_t*>(i.data)[r]);
      if (classes_) add_likeliest(j);
      else {
        j.key("values").begin_array();
        for (double x : row_values_) j.value(x);
        j.end_array();
      }
      j.end_object();
      std::fprintf(out_, "%s\n", j.text().c_str());
    }
  }

 private:
  void add_class(json_text& j, const char* key, i64 c) const {
    j.field(key, c);
    if (const std::string name = data_.class_name(c); !name.empty()) j.field(std::string(key) + "_name", std::string_view(name));
  }
  void add_likeliest(json_text& j) const {
    const auto best = std::max_element(row_values_.begin(), row_values_.end());
    double sum = 0;
    for (double x : row_values_) sum += std::exp(x - *best);
    if (std::isnan(sum)) j.key("class").raw("null");  // as accuracy counts: where a logit is no number, none is likeliest
    else add_class(j, "class", best - row_values_.begin());
    j.field("probability", 1 / sum);
  }

  model_outputs& model_;
  const data_source& data_;
  std::string name_;
  std::FILE* out_;
  extents shape_;
  bool classes_;
  std::string_view labels_;
  std::vector<std::byte> memory_;
  std::vector<double> row_values_;
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
  detail::prediction_lines lines(*t.model, *data, call.options.output_name, call.out);
  for (i64 b = 0; b < batches; ++b) {
    const i64 n = data->validation_rows(b);
    buffers.fill_validation(*data, b, 0, n);
    lines.add(buffers.batch(n), {n, c.time}, [&](i64 r) { return data->validation_sample(b, r); });
  }
  return 0;
}

}  // namespace fusionllm::inline v0
