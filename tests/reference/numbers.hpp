// SPDX-License-Identifier: Apache-2.0
// Reads the files of make_reference.py and make_models.py.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace fusionllm_test {

struct stored_tensor {
  std::string kind, name;
  std::vector<double> values;
};

inline std::ifstream open_numbers(const std::string& file) {
  const std::string here = __FILE__;
  const std::string folder = here.substr(0, here.find_last_of('/') + 1);
  const std::string source = environment("FUSIONLLM_SOURCE");
  const std::string path = (source.empty() ? folder : source + "/tests/reference/") + "numbers/" + file;
  std::ifstream in(path);
  if (!in) FAIL("cannot open " << path << ": run the tests from a complete source tree, or set FUSIONLLM_SOURCE");
  return in;
}

/// All tensors of a case, in double.
inline std::vector<stored_tensor> read_case(const std::string& name) {
  std::ifstream in = open_numbers(name + ".txt");
  std::vector<stored_tensor> r;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    stored_tensor t;
    words >> t.kind >> t.name;
    std::size_t count = 1;
    for (std::string word; words >> word && word != ":";) count *= std::stoul(word);
    const bool single = t.kind == "input" || t.kind == "parameter";  // stored with the digits that fp32 needs
    for (double x; words >> x;) t.values.push_back(single ? double(float(x)) : x);
    REQUIRE(t.values.size() == count);
    r.push_back(t);
  }
  REQUIRE(r.size() > 3);
  return r;
}

/// How far PyTorch's fp32 is from its fp64 for one result of a case.
inline double pytorch_distance(const std::string& name, const std::string& kind, const std::string& tensor) {
  std::ifstream in = open_numbers("distances.txt");
  std::string a, b, c;
  for (double d; in >> a >> b >> c >> d;)
    if (a == name && b == kind && c == tensor) return d;
  FAIL("distances.txt has no line for " << name << ' ' << kind << ' ' << tensor);
  return 0;
}

}  // namespace fusionllm_test
