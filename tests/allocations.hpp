// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of a test program, of all its threads, by replacing the global operator new: include it in one
// file of a program only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace fusionllm_test {
inline std::atomic<long> allocation_count{0};
inline std::atomic<std::size_t> allocation_largest{0};
}  // namespace fusionllm_test

/// Allocations since the program began.
inline long allocations() { return fusionllm_test::allocation_count.load(); }
/// Bytes of the largest one since `forget_largest_allocation`.
inline std::size_t largest_allocation() { return fusionllm_test::allocation_largest.load(); }
inline void forget_largest_allocation() { fusionllm_test::allocation_largest = 0; }

namespace fusionllm_test {
inline void* counted(std::size_t size) noexcept {
  ++allocation_count;
  std::size_t largest = allocation_largest.load();
  while (size > largest && !allocation_largest.compare_exchange_weak(largest, size)) {
  }
  return std::malloc(size == 0 ? 1 : size);
}
}  // namespace fusionllm_test

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FUSIONLLM_TEST_OPERATORS_TAKEN
#endif
#endif
// clang++'s thread sanitizer links operators of its own, all of them: nothing is counted there.
#ifndef FUSIONLLM_TEST_OPERATORS_TAKEN
// g++ warns of a mismatched pair where it sees into one of the two only
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = fusionllm_test::counted(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fusionllm_test::counted(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return fusionllm_test::counted(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif
