// SPDX-License-Identifier: Apache-2.0
// fl::cpu against reference<double> on one model: every value, cotangent and gradient, for each instruction set, one
// and two threads; the bits must not depend on the number of threads.
#pragma once

#include <cstring>
#include <vector>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/device/reference.hpp>

#include "catch.hpp"
#include "graph_runner.hpp"

namespace fusionllm_test {

template <class Model, class Device>
graph_runner<Device> run_once(typename Device::context& c, fl::sizes s, int vocabulary, bool in_place = false) {
  graph_runner<Device> r(fl::graph_of<Model>(), fl::device_table<Model, Device>(), s, c);
  r.in_place = in_place;
  r.randomize(5, vocabulary);
  r.forward();
  r.backward();
  return r;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class Model>
void check_agreement(fl::sizes s, double tolerance = 2e-6, int vocabulary = 1) {
  fl::reference<double>::context exact;
  auto expected = run_once<Model, fl::reference<double>>(exact, s, vocabulary);
  for (const auto isa : {fl::vector_isa::portable, fl::vector_isa::avx2, fl::vector_isa::avx512}) {
    if (!fl::has(isa)) continue;
    fl::cpu::context one(1, isa), two(2, isa);
    auto found = run_once<Model, fl::cpu>(one, s, vocabulary);
    auto by_two = run_once<Model, fl::cpu>(two, s, vocabulary);
    auto in_place = run_once<Model, fl::cpu>(one, s, vocabulary, true);
    for (int i = 0; i < found.graph().size(); ++i) {
      INFO("node " << i << " " << found.graph().nodes[std::size_t(i)].op->name << " " << fl::name_of(isa) << ", batch "
                   << s.batch << ", time " << s.time);
      CHECK(distance(found.value(i), expected.value(i)) <= tolerance);
      CHECK(same_bits(found.value(i), by_two.value(i)));
      CHECK(same_bits(found.value(i), in_place.value(i)));
      // The last bits of cotangents that cancel are large beside what is left.
      if (!expected.cotangent(i).empty()) CHECK(distance(found.cotangent(i), expected.cotangent(i)) <= 4 * tolerance);
    }
    for (int p = 0; p < found.parameter_count(); ++p) {
      INFO("parameter " << found.graph().params[std::size_t(p)].path.view() << " " << fl::name_of(isa));
      CHECK(distance(found.gradient(p), expected.gradient(p)) <= 4 * tolerance);
      CHECK(same_bits(found.gradient(p), by_two.gradient(p)));
    }
  }
}

}  // namespace fusionllm_test
