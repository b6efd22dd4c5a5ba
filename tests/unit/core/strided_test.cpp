// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/core/strided.hpp>

#include <limits>
#include <numeric>
#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::i64;

namespace {

constexpr i64 huge = std::numeric_limits<i64>::max();

template <class T>
std::vector<T> iota(std::size_t n) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), T(0));
  return v;
}

template <class T>
fl::strided_source over(const std::vector<T>& v, fl::dtype type, std::initializer_list<i64> extents,
                        std::initializer_list<i64> strides, i64 offset = 0) {
  return {std::as_bytes(std::span(v)), type, extents, strides, offset};
}

template <class T>
std::vector<T> packed(const fl::strided_source& view) {
  std::vector<T> out(std::size_t(view.elements()));
  fl::pack(view, std::as_writable_bytes(std::span(out)));
  return out;
}

template <class F>
void rejects(F&& f) {
  try {
    f();
    FAIL("accepted");
  } catch (const fl::error& e) {
    CHECK(e.code() == fl::errc::model);
  }
}

/// The logical tensor, straight from the definition.
template <class T>
std::vector<T> by_definition(const std::vector<T>& v, const fl::strided_source& s, i64 offset) {
  std::vector<T> out;
  i64 e[4] = {1, 1, 1, 1}, d[4] = {};
  for (int i = 0; i < s.rank(); ++i) e[4 - s.rank() + i] = s.extent(i), d[4 - s.rank() + i] = s.stride(i);
  for (i64 a = 0; a < e[0]; ++a)
    for (i64 b = 0; b < e[1]; ++b)
      for (i64 c = 0; c < e[2]; ++c)
        for (i64 g = 0; g < e[3]; ++g)
          out.push_back(v[std::size_t(offset + a * d[0] + b * d[1] + c * d[2] + g * d[3])]);
  return out;
}

template <class T>
void every_view(fl::dtype type) {
  const auto v = iota<T>(120);
  struct {
    std::initializer_list<i64> extents, strides;
    i64 offset;
    bool contiguous;
  } const views[] = {
      {{120}, {1}, 0, true},        {{2, 3, 4, 5}, {60, 20, 5, 1}, 0, true},
      {{5, 24}, {1, 5}, 0, false},  {{3, 5, 4}, {20, 1, 5}, 7, false},     // transposed
      {{60}, {2}, 1, false},        {{4, 6}, {24, 2}, 0, false},           // strided
      {{7, 10}, {0, 1}, 3, false},  {{6, 7}, {1, 0}, 0, false},            // broadcast
      {{3, 3}, {0, 0}, 119, false}, {{120}, {-1}, 119, false},             // one element; reversed
      {{4, 5}, {-5, 1}, 15, false}, {{4, 5}, {5, -1}, 4, false},           // reversed along one axis
      {{0}, {1}, 0, true},          {{3, 0, 2}, {2, 9, -7}, 5, true},      // empty
      {{}, {}, 11, true},           {{1, 5, 1}, {999, 1, -999}, 0, true},  // scalar; strides of extent 1
  };
  for (const auto& w : views) {
    const auto view = over(v, type, w.extents, w.strides, w.offset);
    CHECK(view.is_contiguous() == w.contiguous);
    const auto expected = by_definition(v, view, w.offset);
    CHECK(packed<T>(view) == expected);
    std::vector<T> back(120, T(1));
    if (view.elements() == 0) continue;
    const fl::strided_destination target(std::as_writable_bytes(std::span(back)), type, w.extents, w.strides, w.offset);
    if (target.overlaps_itself()) {
      rejects([&] { fl::unpack(std::as_bytes(std::span(expected)), target); });
    } else {
      fl::unpack(std::as_bytes(std::span(expected)), target);
      CHECK(packed<T>(over(back, type, w.extents, w.strides, w.offset)) == expected);
    }
  }
}

}  // namespace

TEST_CASE("pack gives the logical tensor of any view, and unpack puts it back") {
  every_view<float>(fl::dtype::f32);
  every_view<double>(fl::dtype::f64);
  every_view<std::int8_t>(fl::dtype::int8);
  every_view<std::uint16_t>(fl::dtype::bf16);
}

TEST_CASE("a view that reaches outside its memory is an error") {
  const auto v = iota<float>(12);
  const auto bad = [&](std::initializer_list<i64> e, std::initializer_list<i64> s, i64 offset = 0) {
    rejects([&] { over(v, fl::dtype::f32, e, s, offset); });
  };
  bad({13}, {1});
  bad({12}, {1}, 1);
  bad({3, 4}, {4, 2});
  bad({12}, {-1}, 10);
  bad({2}, {-1}, 0);
  bad({1}, {1}, 12);
  bad({1}, {1}, -1);
  bad({1}, {1}, huge);
  bad({2}, {huge});
  bad({2}, {-huge - 1}, 5);
  bad({huge, huge}, {0, 0});
  bad({huge, 2}, {1, 0});
  bad({-1}, {1});
  bad({2, 3}, {1});
  bad({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1});
}

TEST_CASE("a copy needs a buffer of the right size, apart from what the view reaches") {
  auto v = iota<float>(12);
  const auto bytes = std::as_writable_bytes(std::span(v));
  const auto view = over(v, fl::dtype::f32, {2, 3}, {1, 2}, 0);
  std::vector<float> out(5);
  rejects([&] { fl::pack(view, std::as_writable_bytes(std::span(out))); });
  rejects([&] { fl::pack(view, bytes.subspan(0, 24)); });
  rejects([&] { fl::pack(view, bytes.subspan(20, 24)); });
  fl::pack(view, bytes.subspan(24, 24));  // beside it is fine
  CHECK(std::vector<float>(v.begin() + 6, v.end()) == std::vector<float>{0, 2, 4, 1, 3, 5});
}
