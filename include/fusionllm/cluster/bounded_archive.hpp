// SPDX-License-Identifier: Apache-2.0
// Control messages as cereal's portable binary, without trusting a length in them: cereal's own loading of strings and
// vectors resizes to whatever the stream says. Here a list first checks its length against the bytes that are left.
#pragma once

#include <cereal/archives/portable_binary.hpp>
#include <istream>
#include <ostream>
#include <span>
#include <streambuf>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

inline constexpr std::size_t control_cap = 4 << 20;  ///< bytes of a control message

namespace detail {

/// Reads from memory; knows how much is left.
class memory_source : public std::streambuf {
 public:
  explicit memory_source(std::span<const std::byte> in) {
    char* p = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    setg(p, p, p + in.size());
  }
  std::size_t left() const { return std::size_t(egptr() - gptr()); }
};
class memory_sink : public std::streambuf {
 public:
  explicit memory_sink(std::vector<std::byte>& out) : out_(out) {}

 protected:
  std::streamsize xsputn(const char* p, std::streamsize n) override {
    const auto* b = reinterpret_cast<const std::byte*>(p);
    out_.insert(out_.end(), b, b + n);
    return n;
  }
  int_type overflow(int_type c) override {
    if (c != traits_type::eof()) out_.push_back(std::byte(traits_type::to_char_type(c)));
    return c;
  }

 private:
  std::vector<std::byte>& out_;
};

}  // namespace detail

/// Fields of a control message: numbers, strings and lists of those or of structs with `fields(visit)`.
class control_writer {
 public:
  explicit control_writer(std::vector<std::byte>& out) : sink_(out), stream_(&sink_), archive_(stream_) {}
  template <class... T>
  void operator()(const T&... x) {
    (put(x), ...);
  }

 private:
  template <class T>
  void put(const T& x) {
    if constexpr (std::is_arithmetic_v<T>) archive_(x);
    else const_cast<T&>(x).fields(*this);
  }
  void put(const std::string& s) {
    archive_(u64(s.size()));
    archive_(cereal::binary_data(s.data(), s.size()));
  }
  template <class T>
  void put(const std::vector<T>& v) {
    archive_(u64(v.size()));
    for (const T& x : v) put(x);
  }

  detail::memory_sink sink_;
  std::ostream stream_;
  cereal::PortableBinaryOutputArchive archive_;
};

class control_reader {
 public:
  explicit control_reader(std::span<const std::byte> in) : source_(in), stream_(&source_), archive_(stream_) {}
  template <class... T>
  void operator()(T&... x) {
    (get(x), ...);
  }
  std::size_t left() const { return source_.left(); }

 private:
  template <class T>
  void get(T& x) {
    if constexpr (std::is_arithmetic_v<T>) archive_(x);
    else x.fields(*this);
  }
  u64 length(std::size_t each) {
    u64 n = 0;
    archive_(n);
    if (n > source_.left() / each)
      fail(errc::protocol, "a control message claims ", n, " elements, ", source_.left(), " bytes are left of it");
    return n;
  }
  void get(std::string& s) {
    s.resize(length(1));
    archive_(cereal::binary_data(s.data(), s.size()));
  }
  template <class T>
  void get(std::vector<T>& v) {
    v.clear();
    for (u64 n = length(1); n > 0; --n) {
      v.emplace_back();
      get(v.back());
    }
  }

  detail::memory_source source_;
  std::istream stream_;
  cereal::PortableBinaryInputArchive archive_;
};

template <class T>
std::vector<std::byte> encode_control(const T& x) {
  std::vector<std::byte> out;
  control_writer write(out);
  write(x);
  return out;
}
/// Errors: protocol, for anything that is not exactly one T.
template <class T>
T decode_control(std::span<const std::byte> in) {
  if (in.size() > control_cap) fail(errc::protocol, "a control message of ", in.size(), " bytes, the cap is ", control_cap);
  T x;
  try {
    control_reader read(in);
    read(x);
    if (read.left()) fail(errc::protocol, "a control message has ", read.left(), " bytes too many");
  } catch (const cereal::Exception& e) {
    fail(errc::protocol, "a control message ends too early: ", e.what());
  }
  return x;
}

}  // namespace fusionllm::inline v0
