// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of a test program, of all its threads, by replacing the global operator new (allocations.cpp, which a
// program with this header is linked with).
#pragma once

#include <atomic>
#include <cstddef>

namespace fusionllm_test {
inline std::atomic<long> allocation_count{0};
inline std::atomic<std::size_t> allocation_largest{0};
}  // namespace fusionllm_test

/// Allocations since the program began.
inline long allocations() { return fusionllm_test::allocation_count.load(); }
/// Bytes of the largest one since `forget_largest_allocation`.
inline std::size_t largest_allocation() { return fusionllm_test::allocation_largest.load(); }
inline void forget_largest_allocation() { fusionllm_test::allocation_largest = 0; }
