// SPDX-License-Identifier: Apache-2.0
// Catch2, version 2 or 3, by one name. CMake says which was found; this is not a public header of the library.
#pragma once

#ifdef FUSIONLLM_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fusionllm_test {

/// Ends this test program as skipped (ctest says "Skipped"), for what a machine lacks: data, a tool, a device.
[[noreturn]] inline void skip_program(const std::string& why) {
  std::printf("SKIPPED: %s\n", why.c_str());
  std::exit(77);
}

/// The folder that CMake gives for data, `fallback` outside ctest.
inline std::string environment(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

}  // namespace fusionllm_test
