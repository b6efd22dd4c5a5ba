// SPDX-License-Identifier: Apache-2.0
// Writes a safetensors file whose tensors are known before and given one after another, in the order of their names.
// As with checkpoints, the file appears under its name only when it is whole and on the disk.
#pragma once

#include <algorithm>
#include <span>

#include "data_file.hpp"
#include "json_text.hpp"
#include "safetensors_values.hpp"

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
      : path_(std::move(path)), part_(path_ + ".part"), type_(type), tensors_(std::move(tensors)) {
    std::sort(tensors_.begin(), tensors_.end(), [](const tensor& a, const tensor& b) { return a.name < b.name; });
    const std::string text = header();
    file_ = detail::descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file_.get() < 0) broken("create", errno);
    write(text.data(), text.size());
  }
  ~safetensors_writer() {
    if (!finished_ && file_.get() >= 0) ::unlink(part_.c_str());
  }
  safetensors_writer(const safetensors_writer&) = delete;
  safetensors_writer& operator=(const safetensors_writer&) = delete;

  /// In the order in which they are to be given.
  const std::vector<tensor>& tensors() const { return tensors_; }
  u64 bytes_written() const { return written_; }

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
    if (given_ != tensors_.size()) fail(errc::internal, "weights file '", path_, "': ", given_, " of ", tensors_.size(), " tensors were given");
    if (::fsync(file_.get()) != 0) broken("write", errno);
    if (::close(file_.release()) != 0) broken("write", errno);
    if (::rename(part_.c_str(), path_.c_str()) != 0) broken("rename", errno);
    finished_ = true;
    const auto slash = path_.rfind('/');
    detail::descriptor folder(
        ::open(slash == std::string::npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0 && ::fsync(folder.get()) != 0 && errno != EINVAL) broken("write the folder of", errno);
  }

 private:
  static u64 count_of(const tensor& t) {
    u64 n = 1;
    for (u64 d : t.shape) n *= d;
    return n;
  }

  std::string header() const {
    json_text j;
    j.begin_object().key("__metadata__").begin_object().field("format", "pt").end_object();
    u64 at = 0;
    const std::string* before = nullptr;
    for (const tensor& t : tensors_) {
      if (before && *before == t.name) fail(errc::internal, "weights file '", path_, "': two tensors are called '", t.name, "'");
      before = &t.name;
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
    if (given_ == tensors_.size()) fail(errc::internal, "weights file '", path_, "': one tensor more than was said");
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
    write(bytes_.data(), bytes_.size());
  }

  [[noreturn]] void broken(const char* what, int why) {
    if (!finished_) ::unlink(part_.c_str());
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    fail(full ? errc::resource : errc::checkpoint, "cannot ", what, " weights file '", path_, "' after ", written_,
         " bytes: ", std::strerror(why), full ? ": free some space, or write elsewhere" : ": check the folder");
  }
  void write(const void* data, std::size_t size) {
    const char* p = static_cast<const char*>(data);
    while (size > 0) {
      const auto n = ::write(file_.get(), p, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) broken("write", n < 0 ? errno : ENOSPC);
      p += n;
      size -= std::size_t(n);
      written_ += u64(n);
    }
  }

  std::string path_, part_;
  stored_type type_;
  std::vector<tensor> tensors_;
  detail::descriptor file_;
  std::vector<std::byte> bytes_;
  std::size_t given_ = 0;
  u64 written_ = 0;
  bool finished_ = false;
};

}  // namespace fusionllm::inline v0
