// SPDX-License-Identifier: Apache-2.0
// A file as memory that is read when it is touched. The file must not be cut off while it is mapped (a writer that
// replaces it by rename does no harm): touching what is gone ends the process.
#pragma once

#include <sys/mman.h>

#include <span>

#include "data_file.hpp"

namespace fusionllm::inline v0 {

class mapped_file {
 public:
  /// Errors: `code`, with `what` the file is called; errc::resource when there is no address space for it.
  mapped_file(const std::string& path, errc code, const char* what) {
    detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) fail(code, "cannot open ", what, " '", path, "': ", std::strerror(errno), ": check the path");
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) fail(code, "cannot look at ", what, " '", path, "': ", std::strerror(errno));
    if (S_ISDIR(info.st_mode)) fail(code, what, " '", path, "' is a directory, expected a file");
    if (!S_ISREG(info.st_mode)) fail(code, what, " '", path, "' is a pipe or a device, expected a regular file");
    size_ = std::size_t(info.st_size);
    if (size_ == 0) return;
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at == MAP_FAILED)
      fail(errno == ENOMEM ? errc::resource : code, "cannot map ", what, " '", path, "' of ", size_,
           " bytes: ", std::strerror(errno));
    data_ = static_cast<const std::byte*>(at);
  }
  ~mapped_file() {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  }
  mapped_file(mapped_file&& o) noexcept : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  mapped_file& operator=(mapped_file&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }

  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  /// Tell the system that the file will be read from front to back, or a little here and there.
  void read_in_order() const { advise(MADV_SEQUENTIAL); }
  void read_anywhere() const { advise(MADV_RANDOM); }

 private:
  void advise(int how) const {
    if (data_) ::madvise(const_cast<std::byte*>(data_), size_, how);
  }

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fusionllm::inline v0
