// SPDX-License-Identifier: Apache-2.0
// `import`: a run folder whose first checkpoint, of step 0, holds weights from safetensors files. One parameter at a time
// is in memory, and as many zeros. A run that is overwritten stays until the checkpoint is whole.
#pragma once

#include <algorithm>

#include "../trainer/safetensors_weights.hpp"
#include "trained.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// A checkpoint with these weights and an optimizer that has seen nothing. Returns the bytes written.
template <class T>
u64 write_imported(const std::string& path, const model_binding& model, const model_weights& from, u64 seed) {
  const graph_view& g = model.graph;
  std::size_t largest = 0;
  for (const auto& p : g.params) largest = (std::max)(largest, std::size_t(p.count()));
  std::vector<T> values(largest);
  const std::vector<T> nothing(largest);
  checkpoint_writer w(path, {model.fingerprint, 0});
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    const parameter_info& p = g.params[i];
    const std::string name(p.path.view());
    const std::size_t n = std::size_t(p.count());
    from.read(int(i), std::span(values).first(n), seed);
    w.add(name, p.dims, std::span<const T>(values).first(n));
    for (const char* moment : {":m", ":v"}) w.add(name + moment, p.dims, std::span<const T>(nothing).first(n));
  }
  w.finish();
  return w.bytes_written();
}

}  // namespace detail

inline int import_command(const command_call& call) {
  const run_config& c = call.config;
  if (call.options.weights.empty()) fail(errc::usage, "nothing to import: name a safetensors file, an index or a folder with --weights");
  if (c.run.empty()) fail(errc::usage, "nowhere to import to: name a run folder with --run");
  if (c.resume) fail(errc::usage, "--resume is of a run that goes on: import begins one");
  const model_binding& model = call.model;
  const dtype real = weights_beside(model.device(c.device).real);
  const model_weights from(call.options.weights, model.graph, *model.file_names,
                           call.options.partial ? weights_must::fit_in_part : weights_must::fit);
  const run_folder folder(c.run);
  const auto lock = folder.lock();
  folder.open_for_import(c);
  const std::string path = folder.checkpoints().file_of(0);
  const u64 bytes = real == dtype::f64 ? detail::write_imported<double>(path, model, from, u64(c.seed))
                                       : detail::write_imported<float>(path, model, from, u64(c.seed));
  folder.begin_import(c);
  const u64 weights = parameter_count(model.graph);
  if (call.options.json) {
    json_text j(2);
    j.begin_object().field("weights", std::string_view(from.files().path())).field("files", u64(from.files().file_count()));
    j.field("checkpoint", std::string_view(path)).field("bytes", bytes).field("parameters", weights).key("notes").begin_array();
    for (const auto& n : from.notes()) j.value(std::string_view(n));
    j.end_array().end_object();
    std::fprintf(call.out, "%s\n", j.text().c_str());
    return 0;
  }
  for (const auto& n : from.notes()) std::fprintf(call.out, "%s\n", n.c_str());
  std::fprintf(call.out, "%llu weights of %s are in %s; go on with --resume\n", static_cast<unsigned long long>(weights),
               from.files().path().c_str(), path.c_str());
  return 0;
}

}  // namespace fusionllm::inline v0
