// SPDX-License-Identifier: Apache-2.0
// Writes one checkpoint. The file appears under its name only when it is whole and on the disk; until then its bytes are
// in a file beside it with the ending ".part", which an interrupted writer leaves behind and the next start removes.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <unordered_set>

#include "checkpoint_format.hpp"
#include "data_file.hpp"

namespace fusionllm::inline v0 {

class checkpoint_writer {
 public:
  /// Errors of all members: errc::resource when the disk is full, errc::checkpoint otherwise. The checkpoints that exist
  /// stay as they are.
  checkpoint_writer(std::string path, const checkpoint_info& info) : path_(std::move(path)), part_(path_ + ".part") {
    file_ = detail::descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file_.get() < 0) broken("create", errno);
    detail::checkpoint_header h;
    std::memcpy(h.data(), detail::checkpoint_magic, 8);
    h.put(8, detail::checkpoint_version);
    h.put(12, u32(detail::checkpoint_header_bytes));
    h.put(16, info.fingerprint);
    h.put(24, info.step);
    h.put(32, info.samples);
    h.put(40, info.config_digest);
    h.seal();
    write(h.data(), detail::checkpoint_header_bytes);
    chain_.add(h.get<u64>(56));
  }
  ~checkpoint_writer() {
    if (!finished_ && file_.get() >= 0) ::unlink(part_.c_str());
  }
  checkpoint_writer(const checkpoint_writer&) = delete;
  checkpoint_writer& operator=(const checkpoint_writer&) = delete;

  /// A named tensor, straight from its memory. Errors: errc::internal for a name that is empty, too long or there
  /// already, or data of another size than its shape.
  void add(std::string_view name, dtype type, const extents& dims, std::span<const std::byte> data) {
    if (name.empty() || name.size() > detail::longest_record_name || !names_.insert(std::string(name)).second)
      fail(errc::internal, "checkpoint record '", name, "': a name has 1 to 255 characters and comes once");
    if (u64(dims.count()) * size_of(type) != data.size())
      fail(errc::internal, "checkpoint record '", name, "' has ", data.size(), " bytes, its shape says ",
           u64(dims.count()) * size_of(type));
    detail::record_header h;
    h.put(0, detail::record_magic);
    h.put(4, u16(name.size()));
    h.put(6, u8(type));
    h.put(7, u8(dims.rank));
    for (std::size_t i = 0; i < 4; ++i) h.put(8 + 8 * i, i < std::size_t(dims.rank) ? dims.d[i] : i64(0));
    h.put(40, u64(data.size()));
    h.put(48, u64(XXH3_64bits(data.data(), data.size())));
    h.seal(name);
    write(h.data(), detail::record_header_bytes);
    write_padded(name.data(), name.size());
    write_padded(data.data(), data.size());
    chain_.add(h.get<u64>(56));
  }
  template <class T>
  void add(std::string_view name, const extents& dims, std::span<const T> data) {
    add(name, dtype_of<T>, dims, std::as_bytes(data));
  }
  /// Text, as a record of bytes.
  void add_text(std::string_view name, std::string_view text) {
    add(name, dtype::int8, extents{1, {i64(text.size())}}, std::as_bytes(std::span(text.data(), text.size())));
  }

  u64 bytes_written() const { return written_; }

  /// Makes the file whole, durable and visible, in this order.
  void finish() {
    detail::checkpoint_end e;
    e.put(0, detail::end_magic);
    e.put(4, u32(names_.size()));
    e.put(8, written_ + detail::end_bytes);
    e.put(16, chain_.value());
    e.seal();
    write(e.data(), detail::end_bytes);
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
  [[noreturn]] void broken(const char* what, int why) {
    if (!finished_) ::unlink(part_.c_str());
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    fail(full ? errc::resource : errc::checkpoint, "cannot ", what, " checkpoint '", path_, "' after ", written_,
         " bytes: ", std::strerror(why), full ? ": free some space, or use another run folder" : ": check the folder");
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
  void write_padded(const void* data, std::size_t size) {
    static constexpr char nothing[8] = {};
    write(data, size);
    write(nothing, std::size_t(detail::padded(size)) - size);
  }

  std::string path_, part_;
  detail::descriptor file_;
  detail::header_chain chain_;
  std::unordered_set<std::string> names_;
  u64 written_ = 0;
  bool finished_ = false;
};

}  // namespace fusionllm::inline v0
