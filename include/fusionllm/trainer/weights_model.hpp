// SPDX-License-Identifier: Apache-2.0
// A trained model in this process, for use and not for training: the weights that its outputs need, from a checkpoint,
// and memory for one part of a batch.
#pragma once

#include <memory>

#include "../cluster/binding.hpp"
#include "../runtime/forward_weights.hpp"
#include "../runtime/question.hpp"
#include "checkpoint_reader.hpp"
#include "model_outputs.hpp"

namespace fusionllm::inline v0 {

/// Reads one parameter's weights. Errors: checkpoint.
inline void read_weights(const checkpoint_reader& from, const graph_view& g, int parameter, dtype real, std::span<std::byte> to) {
  const parameter_info& p = g.params[std::size_t(parameter)];
  from.read(p.path.view(), real, p.dims, to);
}

class weights_model final : public model_outputs {
 public:
  /// For `outputs` of batches of at most `bound`. Errors: config (device), model, resource, checkpoint.
  weights_model(const model_binding& model, std::string_view device, int threads, const checkpoint_reader& from, const sizes& bound,
                std::span<const forward_output> outputs)
      : weights_model(model, device, threads, bound, outputs, (from.expect_model(model.fingerprint), [&](int p, dtype real, std::span<std::byte> to) {
                        read_weights(from, model.graph, p, real, to);
                      })) {}
  /// The same from elsewhere: read(parameter, type, memory) fills in its weights.
  template <class Read>
  weights_model(const model_binding& model, std::string_view device, int threads, const sizes& bound,
                std::span<const forward_output> outputs, Read&& read)
      : model_outputs(model.graph, model.device(device).real, bound), choice_(model.device(device)), context_(choice_.make(device, threads)),
        weights_(model.graph, needed_by(model.graph, outputs), weights_beside(choice_.real), context_->memory()) {
    check_time(model.graph, bound.time);
    for (int p : weights_.all_held()) read(p, weights_beside(choice_.real), weights_.of(p));
    for (const forward_output& o : outputs)
      passes_.push_back({o.node, std::make_unique<local_forward>(inference(
                                     graph(), o.node, {choice_.kernels, choice_.vectors, context_.get(), choice_.real}, o.bounds,
                                     [this](int p) -> void* { return weights_.on_device(p); }, o.kind))});
  }

  forward_pass& pass_of(int node) override {
    for (auto& [n, pass] : passes_)
      if (n == node) return *pass;
    fail(errc::internal, "node ", node, " is none of the outputs that were wanted");
  }

 private:
  static flags needed_by(const graph_view& g, std::span<const forward_output> outputs) {
    flags r(g.nodes.size(), u8(0));
    for (const forward_output& o : outputs) {
      const flags needed = slice(g, o.node);
      for (std::size_t i = 0; i < r.size(); ++i) r[i] = r[i] || needed[i];
    }
    return r;
  }

  const device_choice& choice_;
  std::unique_ptr<device_context> context_;
  forward_weights weights_;
  std::vector<std::pair<int, std::unique_ptr<forward_pass>>> passes_;
};

}  // namespace fusionllm::inline v0
