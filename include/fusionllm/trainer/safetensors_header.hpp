// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: JSON that names every tensor with its type, shape and place. Each key is checked as
// it is met, so that an error has the byte where it is; whether entries fit each other is for safetensors_layout.hpp.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "../core/error.hpp"
#include "../transport/hello.hpp"
#include "safetensors_type.hpp"

namespace fusionllm::inline v0 {

/// A tensor in a file.
struct stored_tensor {
  std::string name;
  stored_type type = stored_type::f32;
  std::vector<u64> shape;
  u64 begin = 0, end = 0;  ///< bytes in the file
  u64 count = 0;           ///< elements
  u64 said_at = 0;         ///< the byte in the header behind its name
};

namespace detail {

inline constexpr u64 longest_safetensors_header = 100'000'000;  // of the format's own reader
inline constexpr std::size_t largest_stored_rank = 64;

template <class... Parts>
[[noreturn]] void weights_damaged(const std::string& path, u64 offset, const Parts&... parts) {
  fail(errc::checkpoint, "weights file '", path, "' is damaged at byte ", offset, ": ", parts...);
}

/// Characters that tell how far they were read.
class counted_text {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  counted_text() = default;
  counted_text(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  counted_text& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  counted_text operator++(int) {
    const counted_text before = *this;
    ++*this;
    return before;
  }
  bool operator==(const counted_text& o) const { return at_ == o.at_; }

 private:
  const char* at_ = nullptr;
  const char** seen_ = nullptr;
};

/// What the JSON parser tells becomes tensors; anything else than the format has is an error where it is met.
class header_parser {
 public:
  header_parser(const std::string& path, std::string_view text) : path_(path), text_(text), seen_(text.data()) {}

  void run() {
    nlohmann::json::sax_parse(counted_text(text_.data(), &seen_), counted_text(text_.data() + text_.size(), &seen_), this);
  }
  std::vector<stored_tensor> tensors;
  std::map<std::string, std::string> metadata;

  bool null() { return other("null"); }
  bool boolean(bool) { return other("true or false"); }
  bool number_integer(std::int64_t x) { return other("the number " + std::to_string(x)); }
  bool number_float(double, const std::string& text) { return other("the number " + printable(text, 40)); }
  bool binary(nlohmann::json::binary_t&) { return other("bytes"); }
  bool number_unsigned(std::uint64_t x) {
    if (where_ == place::shape) {
      if (tensors.back().shape.size() == largest_stored_rank)
        damaged("a rank above ", largest_stored_rank);
      tensors.back().shape.push_back(x);
    } else if (where_ == place::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensors.back().begin : tensors.back().end) = x;
    } else if (where_ == place::offsets) {
      damaged("data_offsets has more than two numbers");
    } else {
      return other("the number " + std::to_string(x));
    }
    return true;
  }
  bool string(std::string& x) {
    if (where_ == place::metadata) {
      metadata[key_] = std::move(x);
    } else if (where_ == place::tensor && key_ == "dtype") {
      const int t = find_stored_type(x);
      if (t < 0) damaged("dtype '", printable(x), "' is unknown: convert the file to F32, F16 or BF16");
      tensors.back().type = stored_type(t);
    } else {
      return other("a text");
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (where_ == place::outside) where_ = place::names;
    else if (where_ == place::names && key_ == "__metadata__") where_ = place::metadata;
    else if (where_ == place::names) where_ = place::tensor, given_ = 0;
    else return other("an object");
    return true;
  }
  bool end_object() {
    if (where_ == place::tensor && given_ != 7)
      damaged((given_ & 1) == 0 ? "dtype" : (given_ & 2) == 0 ? "shape" : "data_offsets", " is missing");
    where_ = where_ == place::names ? place::outside : place::names;
    return true;
  }
  bool start_array(std::size_t) {
    if (where_ == place::tensor && key_ == "shape") where_ = place::shape;
    else if (where_ == place::tensor && key_ == "data_offsets") where_ = place::offsets, offsets_ = 0;
    else return other("a list");
    return true;
  }
  bool end_array() {
    if (where_ == place::offsets && offsets_ != 2) damaged("data_offsets has ", offsets_, " numbers, expected two");
    where_ = place::tensor;
    return true;
  }
  bool key(std::string& k) {
    if (where_ == place::names) {
      if (!names_.emplace(k, names_.size()).second)
        damaged_at(before(k), "the key '", printable(k), "' comes twice");
      if (k != "__metadata__") {
        tensors.emplace_back().name = k;
        tensors.back().said_at = at();
      }
    } else if (where_ == place::metadata) {
      if (metadata.contains(k)) damaged_at(before(k), "the key '", printable(k), "' comes twice in __metadata__");
    } else {
      const int bit = k == "dtype" ? 1 : k == "shape" ? 2 : k == "data_offsets" ? 4 : 0;
      if (bit == 0) damaged("the key '", printable(k), "' is unknown, expected dtype, shape and data_offsets");
      if (given_ & bit) damaged("the key '", printable(k), "' comes twice");
      given_ |= bit;
    }
    key_ = std::move(k);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) {
    std::string why = e.what();
    if (const auto end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    damaged_at(at(), "the header is not JSON: ", printable(why));
  }

 private:
  enum class place { outside, names, metadata, tensor, shape, offsets };

  u64 at() const { return 8 + u64(seen_ - text_.data()); }
  // Where a key that was just read began, if it has no escapes.
  u64 before(const std::string& k) const { return at() - (std::min)(at() - 8, u64(k.size() + 2)); }

  template <class... Parts>
  [[noreturn]] void damaged_at(u64 offset, const Parts&... parts) const {
    weights_damaged(path_, offset, parts...);
  }
  template <class... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    damaged_at(at(), "tensor '", printable(tensors.back().name), "': ", parts...);
  }
  // Never returns: a value for the parser's functions to end with.
  bool other(const std::string& found) const {
    const char* expected = where_ == place::outside    ? "an object of tensors"
                           : where_ == place::names    ? "an object of dtype, shape and data_offsets"
                           : where_ == place::metadata ? "a text"
                           : key_ == "dtype"           ? "a text"
                           : where_ == place::tensor   ? "a list"
                                                       : "whole numbers of 0 to 2^64 - 1";
    const bool in_tensor = where_ > place::metadata;
    const std::string of = where_ == place::outside
                               ? "the header"
                               : "'" + printable(in_tensor ? tensors.back().name + "'.'" + key_ : key_) + "'";
    damaged_at(at(), of, " is ", found, ", expected ", expected);
  }

  const std::string& path_;
  std::string_view text_;
  const char* seen_;
  place where_ = place::outside;
  std::string key_;
  std::unordered_map<std::string, std::size_t> names_;
  int given_ = 0, offsets_ = 0;
};

}  // namespace detail
}  // namespace fusionllm::inline v0
