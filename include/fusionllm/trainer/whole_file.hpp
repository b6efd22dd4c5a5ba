// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole and on the disk. Until then its bytes are in a file beside it,
// NAME.part.PROCESS-NUMBER, which no other writer has and a killed one leaves behind; what was under the name before stays.
#pragma once

#include <span>
#include <string_view>

#include "data_file.hpp"

namespace fusionllm::inline v0 {

class whole_file {
 public:
  /// `what` it is called in errors. Errors of all members: errc::resource when the disk is full, `code` otherwise.
  whole_file(std::string path, errc code, const char* what) : path_(std::move(path)), code_(code), what_(what) {
    for (int n = 0; file_.get() < 0; ++n) {
      part_ = path_ + ".part." + std::to_string(::getpid()) + '-' + std::to_string(n);
      file_ = detail::descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (file_.get() < 0 && (errno != EEXIST || n == most_tries)) broken("create", errno);
    }
  }
  ~whole_file() {
    if (file_.get() >= 0) ::unlink(part_.c_str());
  }
  whole_file(const whole_file&) = delete;
  whole_file& operator=(const whole_file&) = delete;

  const std::string& path() const { return path_; }
  u64 written() const { return written_; }

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
  /// Puts other bytes where some were written before, at the beginning.
  void rewrite_beginning(std::span<const std::byte> bytes) {
    if (::pwrite(file_.get(), bytes.data(), bytes.size(), 0) != ssize_t(bytes.size())) broken("write", errno);
  }

  /// Makes the file whole, durable and visible, in this order. The last call.
  void finish() {
    if (::fsync(file_.get()) != 0) broken("write", errno);
    if (::rename(part_.c_str(), path_.c_str()) != 0) broken("rename", errno);
    if (::close(file_.release()) != 0) broken("write", errno);
    const auto slash = path_.rfind('/');
    const detail::descriptor folder(
        ::open(slash == std::string::npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0 && ::fsync(folder.get()) != 0 && errno != EINVAL) broken("write the folder of", errno);
  }

 private:
  static constexpr int most_tries = 10000;  ///< each a file that a writer with this process's number holds or left

  [[noreturn]] void broken(const char* how, int why) {
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    fail(full ? errc::resource : code_, "cannot ", how, ' ', what_, " '", path_, "' after ", written_, " bytes: ", std::strerror(why),
         full ? ": free some space, or write elsewhere" : ": check the folder");
  }

  std::string path_, part_;
  errc code_;
  const char* what_;
  detail::descriptor file_;
  u64 written_ = 0;
};

}  // namespace fusionllm::inline v0
