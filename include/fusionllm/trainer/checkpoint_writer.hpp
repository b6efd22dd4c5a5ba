// SPDX-License-Identifier: Apache-2.0
// Writes one checkpoint: a whole file, or none. What an interrupted writer leaves behind, the next start removes.
#pragma once

#include <unordered_set>

#include "checkpoint_format.hpp"
#include "whole_file.hpp"

namespace fusionllm::inline v0 {

class checkpoint_writer {
 public:
  /// Errors of all members: errc::resource when the disk is full, errc::checkpoint otherwise. The checkpoints that exist
  /// stay as they are.
  checkpoint_writer(std::string path, const checkpoint_info& info) : file_(std::move(path), errc::checkpoint, "checkpoint") {
    detail::checkpoint_header h;
    std::memcpy(h.data(), detail::checkpoint_magic, 8);
    h.put(8, detail::checkpoint_version);
    h.put(12, u32(detail::checkpoint_header_bytes));
    h.put(16, info.fingerprint);
    h.put(24, info.step);
    h.seal();
    file_.write(h.data(), detail::checkpoint_header_bytes);
    chain_.add(h.get<u64>(56));
  }

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
    file_.write(h.data(), detail::record_header_bytes);
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

  u64 bytes_written() const { return file_.written(); }

  /// Makes the file whole, durable and visible, in this order.
  void finish() {
    detail::checkpoint_end e;
    e.put(0, detail::end_magic);
    e.put(4, u32(names_.size()));
    e.put(8, file_.written() + detail::end_bytes);
    e.put(16, chain_.value());
    e.seal();
    file_.write(e.data(), detail::end_bytes);
    file_.finish();
  }

 private:
  void write_padded(const void* data, std::size_t size) {
    static constexpr char nothing[8] = {};
    file_.write(data, size);
    file_.write(nothing, std::size_t(detail::padded(size)) - size);
  }

  whole_file file_;
  detail::header_chain chain_;
  std::unordered_set<std::string> names_;
};

}  // namespace fusionllm::inline v0
