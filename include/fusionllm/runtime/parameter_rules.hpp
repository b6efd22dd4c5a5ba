// SPDX-License-Identifier: Apache-2.0
// What the optimizer does to each parameter: which ones it leaves alone, and which ones decay. Patterns are matched with
// full names.
#pragma once

#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/pattern.hpp"
#include "../graph/node.hpp"

namespace fusionllm::inline v0 {

struct parameter_rule {
  bool updates = true;  ///< false: it stays as it is, and its gradient is neither computed nor sent
  bool decays = true;
};

/// One rule a parameter. Running statistics are updated whatever the patterns say. Errors: config, for a pattern that fits
/// no parameter, and where nothing is left to train.
inline std::vector<parameter_rule> parameter_rules(const graph_view& g, const std::vector<std::string>& no_decay,
                                                   const std::vector<std::string>& freeze) {
  std::vector<parameter_rule> r;
  for (const parameter_info& p : g.params) r.push_back({true, p.decays});
  const auto apply = [&](const char* key, const std::vector<std::string>& patterns, bool parameter_rule::*what) {
    for (const std::string& pattern : patterns) {
      bool any = false;
      for (std::size_t i = 0; i < r.size(); ++i) {
        if (!g.params[i].trained() || !fits_pattern(pattern, g.params[i].path.view())) continue;
        r[i].*what = false;
        any = true;
      }
      if (!any) fail(errc::config, key, " has '", pattern, "', which fits no trained parameter: `graph` lists their scopes");
    }
  };
  apply("no_decay", no_decay, &parameter_rule::decays);
  apply("freeze", freeze, &parameter_rule::updates);
  bool any = g.params.empty();
  for (std::size_t i = 0; i < r.size(); ++i) any = any || (r[i].updates && g.params[i].trained());
  if (!any) fail(errc::config, "freeze fits every parameter: nothing is left to train");
  return r;
}

}  // namespace fusionllm::inline v0
