// SPDX-License-Identifier: Apache-2.0
// Catch2's main, compiled once for all test programs because it takes long.
#ifndef FUSIONLLM_CATCH2_V3
#define CATCH_CONFIG_MAIN
#endif
#include "catch.hpp"
