// SPDX-License-Identifier: Apache-2.0
// `evaluate`: the loss of a trained model on the held-out part of the data, beside that of a bigram table for text, and the
// accuracy of a model that has logits for labels.
#pragma once

#include <algorithm>
#include <cmath>

#include "../trainer/accuracy.hpp"
#include "../trainer/bigram.hpp"
#include "../trainer/held_out.hpp"
#include "../trainer/json_text.hpp"
#include "open_data.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

inline int evaluate_command(const command_call& call) {
  const run_config& c = call.config;
  const auto data = open_data(call);
  i64 batches = data->validation_batches();
  if (c.validation_batches > 0) batches = (std::min)(batches, c.validation_batches);
  if (batches == 0) fail(errc::data, data->describe(), ": nothing is held out; use more data");
  const auto* text = dynamic_cast<const text_data*>(data.get());
  const double bigram = text && text->file().vocabulary() <= 4096 ? bigram_loss(*text) : std::nan("");
  const graph_view& g = call.model.graph;
  std::vector<forward_output> outputs{whole_output(c, g.loss)};
  if (labelled_classes_of(g).classes > 0) outputs.push_back(whole_output(c, output_node(g, "logits")));
  const trained t = open_trained(call, {c.batch, c.time}, outputs);
  data_buffers buffers(g, t.model->real_type(), {c.batch, c.time});
  label_accuracy accuracy(*t.model);
  const held_out_loss r = evaluate_held_out(*t.model, *data, buffers, batches, [&](const batch_view& b) {
    if (accuracy.applies()) accuracy.add(b);
  });
  if (call.options.json) {
    json_text j(2);
    j.begin_object().field("checkpoint", std::string_view(t.path)).field("step", t.step).field("batches", batches);
    j.field("loss", r.loss).field("perplexity", std::exp(r.loss)).field("bigram_loss", bigram);
    j.field("accuracy", accuracy.value()).field("rows", r.rows).end_object();
    std::fprintf(call.out, "%s\n", j.text().c_str());
    return 0;
  }
  std::fprintf(call.out, "%s, after step %llu\nheld-out loss %.4f nats over %lld batches, ", t.path.c_str(),
               static_cast<unsigned long long>(t.step), r.loss, static_cast<long long>(batches));
  if (accuracy.applies())
    std::fprintf(call.out, "accuracy %.2f %% (%lld of %lld)\n", 100 * accuracy.value(), static_cast<long long>(accuracy.hits()),
                 static_cast<long long>(accuracy.rows()));
  else std::fprintf(call.out, "perplexity %.3f\n", std::exp(r.loss));
  if (bigram == bigram) std::fprintf(call.out, "a bigram table: %.4f nats\n", bigram);
  return 0;
}

}  // namespace fusionllm::inline v0
