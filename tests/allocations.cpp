// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <cstdlib>
#include <new>

namespace fusionllm_test {
[[maybe_unused]] static void* counted(std::size_t size) noexcept {
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
