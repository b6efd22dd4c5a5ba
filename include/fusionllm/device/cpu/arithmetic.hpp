// SPDX-License-Identifier: Apache-2.0
// What the bits of the CPU's results depend on: the instruction set of our loops, and oneDNN's own choice among its
// products of float matrices, which its version and DNNL_MAX_CPU_ISA decide too.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <string>

#include "vector_isa.hpp"

namespace fusionllm::inline v0::detail {

/// Of oneDNN on this machine; of its instruction sets those count for which it has other float products.
inline const char* onednn_isa() {
  const unsigned isa = unsigned(dnnl_get_effective_cpu_isa());
  const auto has = [&](dnnl_cpu_isa_t set) { return (isa & unsigned(set)) == unsigned(set); };
  return has(dnnl_cpu_isa_avx512_core) ? "avx512" : has(dnnl_cpu_isa_avx2) ? "avx2" : has(dnnl_cpu_isa_avx) ? "avx" : "sse4.1";
}

/// "avx512, oneDNN 2.6.0 (avx512)".
inline std::string cpu_arithmetic() {
  const dnnl_version_t& v = *dnnl_version();
  return std::string(name_of(best_vector_isa())) + ", oneDNN " + std::to_string(v.major) + '.' + std::to_string(v.minor) + '.' +
         std::to_string(v.patch) + " (" + onednn_isa() + ')';
}

}  // namespace fusionllm::inline v0::detail
