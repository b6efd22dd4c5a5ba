// SPDX-License-Identifier: Apache-2.0
// The error that a call ends with, as values to check.
#pragma once

#include <fusionllm/core/error.hpp>
#include <string>

namespace fusionllm_test {

struct caught {
  fusionllm::errc code = fusionllm::errc::ok;
  std::string text;
  /// Whether the error has this code and its text all of these parts.
  template <class... Parts>
  bool says(fusionllm::errc expected, const Parts&... parts) const {
    return code == expected && ((text.find(parts) != std::string::npos) && ...);
  }
};

template <class F>
caught error_of(F&& f) {
  try {
    f();
  } catch (const fusionllm::error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

}  // namespace fusionllm_test
