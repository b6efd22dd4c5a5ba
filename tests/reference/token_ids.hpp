// SPDX-License-Identifier: Apache-2.0
// Reads the files of make_tokens.py.
#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace fusionllm_test {

inline std::string tokens_folder() {
  const std::string here = __FILE__, source = environment("FUSIONLLM_SOURCE");
  return (source.empty() ? here.substr(0, here.find_last_of('/')) : source + "/tests/reference") + "/tokens/";
}

inline std::string page_of_hostile_text() {
  std::ifstream in(tokens_folder() + "page.txt", std::ios::binary);
  if (!in)
    FAIL("cannot open " << tokens_folder()
                        << "page.txt: run the tests from a complete source tree, or set FUSIONLLM_SOURCE");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The numbers of a line of ids.txt.
inline std::vector<unsigned long long> reference_ids(const std::string& name) {
  std::ifstream in(tokens_folder() + "ids.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first != name) continue;
    std::vector<unsigned long long> ids;
    for (unsigned long long id; words >> id;) ids.push_back(id);
    return ids;
  }
  FAIL("ids.txt has no line " << name);
  return {};
}

}  // namespace fusionllm_test
