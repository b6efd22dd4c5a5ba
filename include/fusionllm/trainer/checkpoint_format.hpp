// SPDX-License-Identifier: Apache-2.0
// The bytes of a checkpoint file, little-endian: a header, records (a header each, its name, its data), an end. Every
// header has its own checksum and holds that of its data, so that each can be trusted before it is followed; the end
// holds one over all headers, so that no record can be missing or exchanged.
#pragma once


#include <bit>
#include <cstring>
#include <string>

#include "../core/error.hpp"
#include "../core/xxh3.hpp"
#include "../graph/extent.hpp"

namespace fusionllm::inline v0 {

/// What a checkpoint is of.
struct checkpoint_info {
  u64 fingerprint = 0;    ///< of the model
  u64 step = 0;           ///< steps that are done
  bool operator==(const checkpoint_info&) const = default;
};

namespace detail {

static_assert(std::endian::native == std::endian::little, "checkpoints are written little-endian");

inline constexpr u32 checkpoint_version = 1;
inline constexpr char checkpoint_magic[9] = "FLMCKPT\n";
inline constexpr u32 record_magic = 0x44524352, end_magic = 0x21444E45;
inline constexpr std::size_t checkpoint_header_bytes = 64, record_header_bytes = 64, end_bytes = 32;
inline constexpr std::size_t longest_record_name = 255;

/// A header of fixed size whose last eight bytes are the checksum of the others.
template <std::size_t Size>
class sealed_bytes {
 public:
  template <class T>
  void put(std::size_t at, T v) {
    std::memcpy(bytes_ + at, &v, sizeof v);
  }
  template <class T>
  T get(std::size_t at) const {
    T v;
    std::memcpy(&v, bytes_ + at, sizeof v);
    return v;
  }
  /// `extra` is covered too.
  u64 checksum(std::string_view extra = {}) const {
    return XXH3_64bits_withSeed(extra.data(), extra.size(), XXH3_64bits(bytes_, Size - 8));
  }
  void seal(std::string_view extra = {}) { put(Size - 8, checksum(extra)); }
  bool is_sealed(std::string_view extra = {}) const { return get<u64>(Size - 8) == checksum(extra); }
  char* data() { return bytes_; }
  const char* data() const { return bytes_; }

 private:
  char bytes_[Size] = {};
};

using checkpoint_header = sealed_bytes<checkpoint_header_bytes>;  // magic 0, version 8, size 12, info 16..31, zero 32..55
using record_header = sealed_bytes<record_header_bytes>;  // magic 0, name 4, type 6, rank 7, dims 8, bytes 40, checksum 48
using checkpoint_end = sealed_bytes<end_bytes>;           // magic 0, records 4, file size 8, checksum of headers 16

constexpr u64 padded(u64 bytes) { return (bytes + 7) / 8 * 8; }

/// Checksum over all headers in order.
class header_chain {
 public:
  void add(u64 sealed) { value_ = XXH3_64bits_withSeed(&sealed, sizeof sealed, value_); }
  u64 value() const { return value_; }

 private:
  u64 value_ = 0;
};

}  // namespace detail

}  // namespace fusionllm::inline v0
