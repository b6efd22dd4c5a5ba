// SPDX-License-Identifier: Apache-2.0
// Writes a safetensors file whose tensors are known before and given one after another, in the order of their names.
// It is a whole file, or none.
#pragma once

#include <algorithm>
#include <span>

#include "json_text.hpp"
#include "safetensors_values.hpp"
#include "whole_file.hpp"

namespace fusionllm::inline v0 {

class safetensors_writer {
 public:
  struct tensor {
    std::string name;
    std::vector<u64> shape;
  };

  /// All tensors are of `type`: f64, f32, f16 or bf16. Errors of all members: errc::resource when the disk is full,
  /// errc::checkpoint otherwise; what was under the name before stays. errc::internal: equal names.
  safetensors_writer(std::string path, stored_type type, std::vector<tensor> tensors)
      : type_(type), tensors_(sorted(std::move(tensors), path)), file_(std::move(path), errc::checkpoint, "weights file") {
    const std::string text = header();
    file_.write(text.data(), text.size());
  }

  /// In the order in which they are to be given.
  const std::vector<tensor>& tensors() const { return tensors_; }
  u64 bytes_written() const { return file_.written(); }

  /// The next tensor, as it lies in the file. Errors: also errc::numeric: a finite value beyond the type.
  template <class T>
  void add(std::span<const T> values) {
    const tensor& t = next(values.size());
    const std::size_t size = info_of(type_).bits / 8, most = (std::size_t(1) << 18) / size;
    for (std::size_t at = 0; at < values.size(); at += most) {
      const std::size_t n = (std::min)(most, values.size() - at);
      write_narrowed(t, values.data() + at, n, at);
    }
  }
  /// The next tensor, (columns, rows) in the file, from its transpose (rows, columns).
  template <class T>
  void add_transposed(std::span<const T> values, std::size_t rows) {
    const tensor& t = next(values.size());
    if (values.empty()) return;
    const std::size_t columns = values.size() / rows, most = (std::max)(std::size_t(64), (std::size_t(1) << 16) / rows);
    std::vector<T> turned;
    for (std::size_t at = 0; at < columns; at += most) {
      const std::size_t n = (std::min)(most, columns - at);
      turned.resize(n * rows);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < n; ++c) turned[c * rows + r] = values[r * columns + at + c];
      write_narrowed(t, turned.data(), turned.size(), at * rows);
    }
  }

  /// Makes the file whole, durable and visible, in this order.
  void finish() {
    if (given_ != tensors_.size()) fail(errc::internal, "weights file '", file_.path(), "': ", given_, " of ", tensors_.size(), " tensors were given");
    file_.finish();
  }

 private:
  static std::vector<tensor> sorted(std::vector<tensor> all, const std::string& path) {
    std::sort(all.begin(), all.end(), [](const tensor& a, const tensor& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i - 1].name == all[i].name) fail(errc::internal, "weights file '", path, "': two tensors are called '", all[i].name, "'");
    return all;
  }
  static u64 count_of(const tensor& t) {
    u64 n = 1;
    for (u64 d : t.shape) n *= d;
    return n;
  }

  std::string header() const {
    json_text j;
    j.begin_object().key("__metadata__").begin_object().field("format", "pt").end_object();
    u64 at = 0;
    for (const tensor& t : tensors_) {
      j.key(t.name).begin_object().field("dtype", info_of(type_).name).key("shape").begin_array();
      for (u64 d : t.shape) j.value(d);
      j.end_array().key("data_offsets").begin_array().value(at);
      at += count_of(t) * info_of(type_).bits / 8;
      j.value(at).end_array().end_object();
    }
    std::string text = j.end_object().take();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that data is aligned
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(u64(text.size()) >> (8 * i) & 255);
    return length + text;
  }

  const tensor& next(std::size_t count) {
    if (given_ == tensors_.size()) fail(errc::internal, "weights file '", file_.path(), "': one tensor more than was said");
    const tensor& t = tensors_[given_++];
    if (count_of(t) != count) fail(errc::internal, "tensor '", t.name, "' has ", count, " elements, its shape says ", count_of(t));
    return t;
  }

  template <class T>
  void write_narrowed(const tensor& t, const T* from, std::size_t n, std::size_t at) {
    bytes_.resize(n * info_of(type_).bits / 8);
    const std::size_t held = detail::narrow(type_, from, n, bytes_.data());
    if (held < n)
      fail(errc::numeric, "element ", at + held, " of '", t.name, "' is ", from[held], ", beyond ", info_of(type_).name,
           ": export with a wider --dtype");
    file_.write(bytes_.data(), bytes_.size());
  }

  stored_type type_;
  std::vector<tensor> tensors_;
  whole_file file_;
  std::vector<std::byte> bytes_;
  std::size_t given_ = 0;
};

}  // namespace fusionllm::inline v0
