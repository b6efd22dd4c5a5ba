// SPDX-License-Identifier: Apache-2.0
// From a broker's assignment to a peer's engine: its options and its codecs.
#pragma once

#include "../runtime/engine.hpp"
#include "planning.hpp"

namespace fusionllm::inline v0 {

/// The codec's type is the run's; its ratio that of the edge's link. A link that is not listed carries raw tensors.
inline std::unique_ptr<codec> codec_for(const model_binding& model, const codec_options& details, const plan& p, const edge& e) {
  for (const auto& c : p.codecs)
    for (int from : p.peers[std::size_t(e.from)])
      for (int to : p.peers[std::size_t(e.to)])
        if (c.from == from && c.to == to && c.codec != "none") {
          codec_options o = details;
          o.ratio = c.ratio;
          return model.make_codec(c.codec, o);
        }
  return model.make_codec(no_compression::label, {});
}

/// `model` must outlive the engine. Errors: protocol.
inline engine_options engine_options_of(const assignment& a, const plan& p, int rank, const model_binding& model, const cluster_settings& s,
                                        std::vector<std::string> names) {
  engine_options e;
  e.self = rank;
  e.seed = s.seed;
  e.bounds = s.micro_batch_bounds();
  e.optimizer = s.optimizer;
  e.make_codec = [&model, details = s.codec_details, p](const edge& x) { return codec_for(model, details, p, x); };
  e.holds.assign(a.holds.begin(), a.holds.end());
  e.update_hold = a.update_hold;
  e.epoch = a.epoch;
  e.skipping = s.skipping;
  if (!a.history.empty()) e.history = loss_history::from(a.history, errc::protocol);
  e.names = std::move(names);
  return e;
}

}  // namespace fusionllm::inline v0
