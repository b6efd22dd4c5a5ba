// SPDX-License-Identifier: Apache-2.0
// A consumer of fusionllm::core: nothing but the standard library and threads is needed.
#include <cstdio>

#include <fusionllm/core/version.hpp>

namespace fl = fusionllm;

int main() {
  std::printf("fusionllm %d.%d.%d\n", fl::version_major, fl::version_minor, fl::version_patch);
}
