// SPDX-License-Identifier: Apache-2.0
// Writes JSON as text, in the order of calls. Values that JSON does not have (NaN, infinities) become null; text that
// is not UTF-8 is written byte for byte as \u00xx.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// The shortest text that reads back to the same double.
inline std::string number_text(double x) {
  char buffer[32];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, x);
  return {buffer, r.ptr};
}

namespace detail {

/// Length of the UTF-8 sequence at the start of `s`; 0: it is none.
constexpr std::size_t utf8_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char b = byte(0);
  if (b < 0x80) return 1;
  const std::size_t n = b >= 0xC2 && b < 0xE0 ? 2 : b >= 0xE0 && b < 0xF0 ? 3 : b >= 0xF0 && b < 0xF5 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (b == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (b == 0xED && byte(1) >= 0xA0) return 0;  // surrogate
  if (b == 0xF0 && byte(1) < 0x90) return 0;
  if (b == 0xF4 && byte(1) >= 0x90) return 0;
  return n;
}

}  // namespace detail

class json_text {
 public:
  /// `indent` spaces a level; 0: everything on one line.
  explicit json_text(int indent = 0) : indent_(indent) {}

  json_text& begin_object() { return open('{'); }
  json_text& end_object() { return close('}'); }
  json_text& begin_array() { return open('['); }
  json_text& end_array() { return close(']'); }
  json_text& key(std::string_view k) {
    next();
    quote(k);
    text_ += indent_ ? ": " : ":";
    after_key_ = true;
    return *this;
  }
  json_text& value(std::string_view v) { return next(), quote(v), *this; }
  json_text& value(const char* v) { return value(std::string_view(v)); }
  json_text& value(i64 v) { return raw(std::to_string(v)); }
  json_text& value(u64 v) { return raw(std::to_string(v)); }
  json_text& value(int v) { return value(i64(v)); }
  json_text& value(bool v) { return raw(v ? "true" : "false"); }
  json_text& value(double v) { return raw(std::isfinite(v) ? number_text(v) : "null"); }
  /// Text that is JSON already.
  json_text& raw(std::string_view v) { return next(), text_ += v, *this; }
  template <class T>
  json_text& field(std::string_view k, T v) {
    return key(k).value(v);
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  json_text& open(char c) {
    next();
    text_ += c;
    ++depth_;
    first_ = true;
    return *this;
  }
  json_text& close(char c) {
    --depth_;
    if (!first_) new_line();
    text_ += c;
    first_ = false;
    return *this;
  }
  void next() {
    if (std::exchange(after_key_, false)) return;
    if (depth_ == 0) return;
    if (!std::exchange(first_, false)) text_ += ',';
    new_line();
  }
  void new_line() {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(std::size_t(indent_ * depth_), ' ');
  }
  void quote(std::string_view s) {
    text_ += '"';
    while (!s.empty()) {
      const std::size_t n = detail::utf8_length(s);
      if (n == 1) character(s[0]);
      else if (n == 0) escape(static_cast<unsigned char>(s[0]));
      else text_ += s.substr(0, n);
      s.remove_prefix(n ? n : 1);
    }
    text_ += '"';
  }
  void character(char c) {
    if (c == '"' || c == '\\') (text_ += '\\') += c;
    else if (c == '\n') text_ += "\\n";
    else if (c == '\t') text_ += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) escape(static_cast<unsigned char>(c));
    else text_ += c;
  }
  void escape(unsigned char c) {
    static constexpr char digits[] = "0123456789abcdef";
    text_ += "\\u00";
    text_ += digits[c >> 4];
    text_ += digits[c & 15];
  }

  std::string text_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace fusionllm::inline v0
