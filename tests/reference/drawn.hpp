// SPDX-License-Identifier: Apache-2.0
// The weights and data of make_models.py, which are functions of names and indices.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fusionllm/graph/node.hpp>

namespace fusionllm_test {

/// 32 random bits of index i of a stream.
inline fusionllm::u32 mixed(fusionllm::u32 stream, std::size_t i) {
  fusionllm::u32 x = fusionllm::u32(i) + stream * 1000003u;
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

/// A parameter's elements: half of [-1/2, 1/2), about 1 for the scale of a norm.
inline std::vector<double> drawn(const fusionllm::graph_view& g, int parameter) {
  std::vector<std::string> names;
  for (const auto& p : g.params) names.emplace_back(p.path.view());
  const std::string name = names[std::size_t(parameter)];
  std::sort(names.begin(), names.end());
  const auto stream = fusionllm::u32(std::find(names.begin(), names.end(), name) - names.begin());
  const bool norm = name.find("ln_") != std::string::npos || name.find("norm") != std::string::npos;
  const double middle = norm && name.ends_with("weight") ? 1 : 0;
  std::vector<double> w(std::size_t(g.params[std::size_t(parameter)].count()));
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] = middle + 0.5 * (double(mixed(stream, i) >> 8) / 16777216.0 - 0.5);
  return w;
}

/// A bias of keys has no gradient in exact arithmetic, so what belongs to c_attn.bias is compared without.
inline std::vector<double> without_keys(const std::string& name, std::vector<double> x) {
  const auto third = std::ptrdiff_t(x.size() / 3);
  if (name.ends_with("c_attn.bias")) x.erase(x.begin() + third, x.begin() + 2 * third);
  return x;
}

}  // namespace fusionllm_test
