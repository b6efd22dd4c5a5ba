// SPDX-License-Identifier: Apache-2.0
// `export`: the weights of a trained model as a safetensors file, under the names that other programs know them by. One
// parameter at a time is in memory.
#pragma once

#include "../trainer/safetensors_weights.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline stored_type stored_type_of(std::string_view dtype) {
  return dtype == "fp16" ? stored_type::f16 : dtype == "bf16" ? stored_type::bf16 : dtype == "fp64" ? stored_type::f64 : stored_type::f32;
}

}  // namespace detail

inline int export_command(const command_call& call) {
  if (call.options.output.empty()) fail(errc::usage, "nowhere to export to: name a file with --output, such as model.safetensors");
  const model_binding& model = call.model;
  const graph_view& g = model.graph;
  const checkpoint_reader from = trained_checkpoint(call);
  from.expect_model(model.fingerprint);
  const auto* first = g.params.empty() ? nullptr : from.find(g.params[0].path.view());
  const dtype real = first && first->type == dtype::f64 ? dtype::f64 : dtype::f32;
  std::vector<std::byte> values;
  const u64 bytes = write_weights(call.options.output, detail::stored_type_of(call.options.dtype), g, *model.file_names, real, [&](int i) {
    const parameter_info& p = g.params[std::size_t(i)];
    values.resize(std::size_t(p.count()) * size_of(real));
    from.read(p.path.view(), real, p.dims, values);
    return values.data();
  });
  if (call.options.json) {
    json_text j(2);
    j.begin_object().field("checkpoint", std::string_view(from.path())).field("step", from.info().step);
    j.field("output", std::string_view(call.options.output)).field("dtype", std::string_view(call.options.dtype));
    j.field("bytes", bytes).field("parameters", parameter_count(g)).end_object();
    std::fprintf(call.out, "%s\n", j.text().c_str());
    return 0;
  }
  std::fprintf(call.out, "%llu weights of %s, after step %llu, are in %s as %s, %llu bytes\n",
               static_cast<unsigned long long>(parameter_count(g)), from.path().c_str(), static_cast<unsigned long long>(from.info().step),
               call.options.output.c_str(), call.options.dtype.c_str(), static_cast<unsigned long long>(bytes));
  return 0;
}

}  // namespace fusionllm::inline v0
