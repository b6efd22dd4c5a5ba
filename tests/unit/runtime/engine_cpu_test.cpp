// SPDX-License-Identifier: Apache-2.0
// Case C01 on fl::cpu, whose kernels have their own orders of summation, with one thread and with two.
#include <fusionllm/device/cpu.hpp>

#include "same_bits.hpp"

using namespace fusionllm_test;

TEST_CASE("cpu: the same bits for every plan and schedule") { same_bits<fusionllm::cpu>{20, 8}; }
TEST_CASE("cpu with two threads: the same bits for every plan and schedule") { same_bits<fusionllm::cpu>{5, 2, 2}; }
