// SPDX-License-Identifier: Apache-2.0
// Frames packed by the bodies of pack_values.hpp, pack_positions.hpp and select_rows.hpp, launched on a GPU or on the
// host's teams: the bytes are those of the CPU's codecs.
#pragma once

#include <fusionllm/compress/device_packing.hpp>
#include <fusionllm/core/error.hpp>

#include "pack_positions.hpp"
#include "pack_values.hpp"
#include "select_rows.hpp"

namespace fusionllm::inline v0 {

template <class Launch>
class team_packing : public device_packing {
 public:
  using context = typename Launch::context;
  team_packing(context& c, device_memory& m) : context_(c), memory_(m) {}

  device_memory& memory() override { return memory_; }

  // One team for all: a device with something better overrides it.
  void select(const float* x, i64 n, i64 k, u32* positions, void*) override { select_rows(x, 1, n, k, positions); }
  u64 select_bytes(i64, i64) override { return 0; }
  void select_rows(const float* x, i64 rows, i64 columns, i64 k, u32* positions) override {
    if (k > 0) Launch::blocks(context_, rows, detail::select_rows_body{x, rows, columns, k, positions}, "launch a selection");
  }

  void pick(const void* x, std::size_t bytes, const u32* positions, i64 k, void* out) override {
    with_element(bytes, [&]<class E>(E) {
      Launch::items(context_, k, detail::pick_body<E>{static_cast<const E*>(x), positions, k, static_cast<E*>(out)}, what);
    });
  }
  void place(const void* x, std::size_t bytes, const u32* positions, i64 k, void* out, i64 n) override {
    memory_.zero(out, u64(n) * bytes);
    with_element(bytes, [&]<class E>(E) {
      Launch::items(context_, k, detail::place_body<E>{static_cast<const E*>(x), positions, k, static_cast<E*>(out)}, what);
    });
  }
  void compose(const u32* outer, u32* inner, i64 k) override {
    Launch::items(context_, k, detail::compose_body{outer, inner, k}, what);
  }

  void low_bits(const u32* positions, i64 k, int low, u32* out) override {
    if (low > 0)
      Launch::items(context_, detail::low_bits_body::words(k, low), detail::low_bits_body{positions, k, low, out}, what);
  }
  void set_bits(const u32* positions, i64 k, int shift, bool spread, u32* out, u64 bytes) override {
    memory_.zero(out, bytes);
    Launch::items(context_, k, detail::set_bits_body{positions, k, shift, spread, out}, what);
  }

  void write_values(value_coding coding, const float* v, i64 n, void* out, int* exponent, void* scratch) override {
    switch (coding) {
      case value_coding::f32: return memory_.copy(out, v, u64(n) * 4);
      case value_coding::int8:
        return Launch::items(context_, detail::int8_body::blocks(n), detail::int8_body{v, n, static_cast<u8*>(out)}, what);
      case value_coding::f16: {
        auto* part = static_cast<float*>(scratch);
        auto* scale = reinterpret_cast<int*>(part + detail::magnitude_parts);
        Launch::blocks(context_, detail::magnitude_parts, detail::largest_parts{v, n, part}, what);
        Launch::blocks(context_, 1, detail::f16_exponent_body{part, scale, exponent}, what);
        return Launch::items(context_, n, detail::f16_body{v, n, scale, static_cast<u16*>(out)}, what);
      }
      default: fail(errc::internal, "value coding ", int(coding), " is not written on a device");
    }
  }

  void to_f32(const void* x, dtype type, i64 n, float* out) override {
    if (type == dtype::f32) return memory_.copy(out, x, u64(n) * 4);
    if (type == dtype::bf16) return convert<bfloat16, float>(x, out, n, largest_float);
    convert<float16, float>(x, out, n, largest_float);
  }
  void from_f32(const float* x, dtype type, i64 n, void* out) override {
    if (type == dtype::f32) return memory_.copy(out, x, u64(n) * 4);
    if (type == dtype::bf16) return convert<float, bfloat16>(x, out, n, std::bit_cast<float>(0x7F7F0000u));
    convert<float, float16>(x, out, n, 65504.0f);
  }

 protected:
  static constexpr float largest_float = std::bit_cast<float>(0x7F7FFFFFu);
  static constexpr const char* what = "launch the packing of a frame";

  template <class F>
  static void with_element(std::size_t bytes, F&& f) {
    if (bytes == 8) f(u64{});
    else if (bytes == 4) f(u32{});
    else if (bytes == 2) f(u16{});
    else f(u8{});
  }
  template <class From, class To>
  void convert(const void* x, void* out, i64 n, float largest) {
    Launch::items(context_, n, detail::convert_body<From, To>{static_cast<const From*>(x), static_cast<To*>(out), n, largest}, what);
  }

  context& context_;
  device_memory& memory_;
};

}  // namespace fusionllm::inline v0
