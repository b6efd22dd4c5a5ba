// SPDX-License-Identifier: Apache-2.0
// The element types of safetensors files: their names, sizes, and which of them can be weights here.
#pragma once

#include <iterator>
#include <string_view>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// In the order of `stored_types`.
enum class stored_type : u8 {
  f64, f32, f16, bf16, int64, int32, int16, int8, uint64, uint32, uint16, uint8,
  boolean, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz, f6_e2m3, f6_e3m2, f4, complex64
};

struct stored_type_info {
  std::string_view name;  ///< in files
  u8 bits;                ///< of an element
  bool readable;          ///< becomes fp32 or fp64 here
};

inline constexpr stored_type_info stored_types[] = {
    {"F64", 64, true},          {"F32", 32, true},          {"F16", 16, true},      {"BF16", 16, true},
    {"I64", 64, true},          {"I32", 32, true},          {"I16", 16, true},      {"I8", 8, true},
    {"U64", 64, true},          {"U32", 32, true},          {"U16", 16, true},      {"U8", 8, true},
    {"BOOL", 8, false},         {"F8_E5M2", 8, false},      {"F8_E4M3", 8, false},  {"F8_E8M0", 8, false},
    {"F8_E4M3FNUZ", 8, false},  {"F8_E5M2FNUZ", 8, false},  {"F6_E2M3", 6, false},  {"F6_E3M2", 6, false},
    {"F4", 4, false},           {"C64", 64, false},
};

constexpr const stored_type_info& info_of(stored_type t) { return stored_types[std::size_t(t)]; }
/// -1: no such type.
constexpr int find_stored_type(std::string_view name) {
  for (std::size_t i = 0; i < std::size(stored_types); ++i)
    if (stored_types[i].name == name) return int(i);
  return -1;
}
static_assert(find_stored_type("C64") == int(stored_type::complex64));

}  // namespace fusionllm::inline v0
