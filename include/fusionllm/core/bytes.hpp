// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers and texts in byte buffers. A reader trusts no length: it checks against what is left and
// against the caller's limit before it allocates, and its errors name the field.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "types.hpp"

namespace fusionllm::inline v0 {

using byte_span = std::span<std::byte>;
using const_byte_span = std::span<const std::byte>;

/// Stores an unsigned integer at `to`, least significant byte first.
template <class T>
void store_little(std::byte* to, T value) {
  static_assert(std::is_unsigned_v<T>, "store_little takes an unsigned integer");
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = std::byte(u8(u64(value) >> (8 * i)));
}

template <class T>
T load_little(const std::byte* from) {
  static_assert(std::is_unsigned_v<T>, "load_little gives an unsigned integer");
  u64 value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= u64(std::to_integer<u8>(from[i])) << (8 * i);
  return T(value);
}

inline const_byte_span bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Appends to a buffer that it owns.
class byte_writer {
 public:
  template <class T>
  byte_writer& number(T value) {
    using U = std::make_unsigned_t<T>;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_little<U>(bytes_.data() + at, static_cast<U>(value));
    return *this;
  }
  byte_writer& real(double value) { return number(std::bit_cast<u64>(value)); }
  byte_writer& raw(const_byte_span data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }
  /// A 32-bit length, then the bytes.
  byte_writer& text(std::string_view s) { return number(u32(s.size())).raw(bytes_of(s)); }
  byte_writer& blob(const_byte_span data) { return number(u64(data.size())).raw(data); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a `byte_writer` wrote. Every failure is `code` (a protocol error by default).
class byte_reader {
 public:
  explicit byte_reader(const_byte_span data, errc code = errc::protocol) : data_(data), code_(code) {}

  std::size_t left() const { return data_.size() - at_; }

  template <class T>
  T number(std::string_view field) {
    return static_cast<T>(load_little<std::make_unsigned_t<T>>(raw(sizeof(T), field).data()));
  }
  double real(std::string_view field) { return std::bit_cast<double>(number<u64>(field)); }
  const_byte_span raw(u64 size, std::string_view field) {
    if (size > left())
      fail(code_, field, ": needs ", size, " bytes, ", left(), " are left: the message was cut short or is damaged");
    const const_byte_span part = data_.subspan(at_, std::size_t(size));
    at_ += std::size_t(size);
    return part;
  }
  std::string text(std::size_t limit, std::string_view field) {
    const const_byte_span part = raw(limited(number<u32>(field), limit, field), field);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  const_byte_span blob(u64 limit, std::string_view field) {
    return raw(limited(number<u64>(field), limit, field), field);
  }
  /// A count of things that take at least `least` bytes each.
  std::size_t count(std::size_t limit, std::size_t least, std::string_view field) {
    const u64 n = limited(number<u32>(field), limit, field);
    if (least != 0 && n > left() / least)
      fail(code_, field, ": claims ", n, " entries, ", left(), " bytes are left: the message is damaged");
    return std::size_t(n);
  }
  void end(std::string_view what) const {
    if (left() != 0) fail(code_, what, ": ", left(), " bytes too many at its end");
  }

 private:
  u64 limited(u64 size, u64 limit, std::string_view field) const {
    if (size > limit) fail(code_, field, ": claims a length of ", size, ", the limit is ", limit);
    return size;
  }

  const_byte_span data_;
  std::size_t at_ = 0;
  errc code_;
};

}  // namespace fusionllm::inline v0
