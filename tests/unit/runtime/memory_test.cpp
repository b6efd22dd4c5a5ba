// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/memory.hpp>

#include <cstdint>

#include <fusionllm/core/philox.hpp>
#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fl::u32;
using fl::u64;

TEST_CASE("packed values that live at once never overlap, and packing is no larger than laying side by side") {
  for (u64 seed = 0; seed < 300; ++seed) {
    u64 n = 0;
    const auto draw = [&](u32 below) { return int(fl::random_word({seed, 1, 0, 0}, n++) % below); };
    std::vector<fl::packed_value> values(std::size_t(1 + draw(40)));
    const int instants = 1 + draw(30);
    std::vector<fl::packed_value*> all;
    u64 side_by_side = 0;
    for (auto& v : values) {
      v.bytes = u64(draw(5) ? 1 + draw(1000) : 0);
      v.first = draw(u32(instants));
      v.last = draw(6) ? v.first + draw(u32(instants)) : v.first - 1;
      if (v.alive()) side_by_side += fl::aligned(v.bytes);
      all.push_back(&v);
    }
    const u64 total = fl::pack(all);
    u64 busiest = 0;
    for (int t = 0; t < 2 * instants; ++t) {
      u64 alive = 0;
      for (const auto& v : values)
        if (v.alive() && v.first <= t && t <= v.last) alive += fl::aligned(v.bytes);
      busiest = std::max(busiest, alive);
    }
    CHECK(total >= busiest);
    CHECK(total <= side_by_side);
    for (const auto& a : values)
      for (const auto& b : values) {
        if (&a == &b || !a.alive() || !b.alive() || a.last < b.first || b.last < a.first) continue;
        const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
        CHECK(apart);
      }
    for (const auto& v : values)
      if (v.alive()) {
        CHECK(v.offset % fl::memory_alignment == 0);
        CHECK(v.offset + v.bytes <= total);
      }
  }
}

TEST_CASE("values one after another share one place") {
  std::vector<fl::packed_value> v{{100, 0, 1, 0}, {90, 2, 3, 0}, {80, 4, 4, 0}, {70, 1, 2, 0}};
  CHECK(fl::pack({&v[0], &v[1], &v[2], &v[3]}) == 128 + 128);
  CHECK(v[0].offset == v[1].offset);
  CHECK(v[0].offset == v[2].offset);
  CHECK(v[3].offset == 128);
  CHECK(fl::pack({}) == 0);
}

TEST_CASE("a block is aligned and zero; one that no machine has is a resource error") {
  const fl::memory_block b(1000);
  CHECK(b.size() == 1024);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % fl::memory_alignment == 0);
  for (u64 i = 0; i < b.size(); ++i) CHECK(b.data()[i] == std::byte(0));
  CHECK(fl::memory_block(0).data() != nullptr);
  CHECK(fl::memory_block().data() == nullptr);
  CHECK(fusionllm_test::error_of([] { fl::memory_block(u64(1) << 60); }).says(fl::errc::resource, "1152921504606846976 bytes"));
}
