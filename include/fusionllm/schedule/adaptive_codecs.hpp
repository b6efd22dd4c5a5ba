// SPDX-License-Identifier: Apache-2.0
// AdaTopK's rule for how much each link compresses, after FusionLLM: each direction gets the smallest ratio at which all
// it carries in a step takes no longer than tau, and sends raw where that is soon enough. The least tau is
//   max(slowest link at the user's ratio, slowest device):
// compressing past it only loses signal. A pipeline also has to fill and drain over its links, so that a link as busy
// as the slowest device makes steps longer; therefore tau is lowered until a step takes nearly what it takes at the
// user's ratio everywhere.
#pragma once

#include "predict.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// What one directed link carries in a step.
struct directed_load {
  int from, to;
  std::vector<std::pair<int, int>> tensors;  ///< node, how often

  nanoseconds time(const step_profile& f, const std::string& codec, double ratio) const {
    nanoseconds sum = 0;
    for (const auto& [node, times] : tensors) {
      const nanoseconds each = f.problem().costs->occupancy(from, to, f.wire_bytes(node, {from, to, codec, ratio}));
      sum = plus(sum, each > never / times ? never : each * times);
    }
    return sum;
  }
};

inline std::vector<directed_load> directed_loads(const step_profile& f, const plan& p) {
  std::vector<directed_load> r;
  for (const edge& e : compile(f.graph(), p).edges)
    for (int m = 0; m < p.micro_batches; ++m) {
      const int from = p.peer_of(e.from, m), to = p.peer_of(e.to, m);
      auto link = std::find_if(r.begin(), r.end(), [&](const directed_load& l) { return l.from == from && l.to == to; });
      if (link == r.end()) link = r.insert(r.end(), {from, to, {}});
      auto tensor = std::find_if(link->tensors.begin(), link->tensors.end(), [&](const auto& t) { return t.first == e.node; });
      if (tensor == link->tensors.end()) link->tensors.push_back({e.node, 1});
      else ++tensor->second;
    }
  return r;
}

/// Compute time in a step of the peer that has most of it.
inline nanoseconds slowest_compute(const step_profile& f, const plan& p) {
  std::vector<nanoseconds> busy(std::size_t(f.problem().peers()));
  for (int i : f.order())
    for (int m = 0; m < p.micro_batches; ++m) {
      const int peer = p.peer_of(p.stage_of[std::size_t(i)], m);
      busy[std::size_t(peer)] = plus(busy[std::size_t(peer)], f.both(peer, i));
    }
  return *std::max_element(busy.begin(), busy.end());
}

/// The smallest ratios, up to `most`, at which no link takes longer than tau.
inline std::vector<link_codec> ratios_for(const step_profile& f, const std::vector<directed_load>& loads, nanoseconds tau,
                                          const std::string& codec, double most) {
  std::vector<link_codec> r;
  for (const auto& l : loads) {
    if (l.time(f, "none", 1) <= tau) continue;
    i64 enough = i64(most * 1000), little = 1000;  // thousandths
    while (enough - little > 1) {
      const i64 middle = little + (enough - little) / 2;
      (l.time(f, codec, double(middle) / 1000) <= tau ? enough : little) = middle;
    }
    r.push_back({l.from, l.to, codec, double(enough) / 1000});
  }
  return r;
}

}  // namespace detail

/// One entry a directed link that has to compress, at most at `ratio`, so that a predicted step is at most `slack`
/// percent longer than with `ratio` on every link. Errors: errc::plan for a ratio that is no number, and as predict_step.
inline std::vector<link_codec> adaptive_codecs(const step_profile& f, plan p, const std::string& codec, double ratio,
                                               int slack = 5) {
  if (!(ratio >= 0 && ratio <= 1e6)) fail(errc::plan, "the compression ratio is ", ratio, ", expected 0 to 1000000");
  const auto loads = detail::directed_loads(f, p);
  nanoseconds tau = detail::slowest_compute(f, p);
  p.codecs.clear();
  for (const auto& l : loads) {
    p.codecs.push_back({l.from, l.to, codec, ratio});
    tau = (std::max)(tau, l.time(f, codec, ratio));
  }
  const nanoseconds shortest = predict_step(f, p);
  constexpr int parts = 16;
  for (int k = parts; k > 0; --k) {
    p.codecs = detail::ratios_for(f, loads, tau / parts * k, codec, ratio);
    if (predict_step(f, p) <= shortest + shortest / 100 * slack) break;
  }
  return p.codecs;
}

}  // namespace fusionllm::inline v0
