// SPDX-License-Identifier: Apache-2.0
// Reads a checkpoint. Opening it checks every header against the file's size and checksums, and reads no tensor; each
// tensor is checked when it is read, straight into its memory. Nothing is allocated from a number in the file.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "checkpoint_format.hpp"
#include "data_file.hpp"

namespace fusionllm::inline v0 {

class checkpoint_reader {
 public:
  struct record {
    std::string name;
    dtype type = dtype::f32;
    extents dims{};
    u64 offset = 0;  ///< of the data in the file
    u64 bytes = 0;
    u64 checksum = 0;
  };

  /// Errors: errc::checkpoint with file, offset, what was found and expected.
  explicit checkpoint_reader(std::string path) : path_(std::move(path)) {
    file_ = detail::descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file_.get() < 0) fail(errc::checkpoint, "cannot open checkpoint '", path_, "': ", std::strerror(errno));
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
      fail(errc::checkpoint, "checkpoint '", path_, "' is not a regular file");
    size_ = u64(status.st_size);
    read_header();
    u64 at = detail::checkpoint_header_bytes;
    while (at + detail::end_bytes < size_) at = read_record(at);
    read_end(at);
  }

  const std::string& path() const { return path_; }
  const checkpoint_info& info() const { return info_; }
  const std::vector<record>& records() const { return records_; }
  /// Null if there is none.
  const record* find(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? nullptr : &records_[found->second];
  }

  /// Errors: errc::checkpoint when it is of another model.
  void expect_model(u64 fingerprint) const {
    if (info_.fingerprint != fingerprint)
      fail(errc::checkpoint, "checkpoint '", path_, "' is of a model with fingerprint ", info_.fingerprint,
           ", this model's is ", fingerprint, ": use the program that wrote it");
  }

  /// Reads the data of `name` into `data`. Errors: errc::checkpoint when there is no such record, or it is of another
  /// type or shape, or damaged (`data` is unspecified then).
  void read(std::string_view name, dtype type, const extents& dims, std::span<std::byte> data) const {
    const record& r = require(name);
    if (r.type != type || r.dims != dims || r.bytes != data.size())
      fail(errc::checkpoint, "'", name, "' in checkpoint '", path_, "' is ", name_of(r.type), " of ", r.bytes,
           " bytes", shape_of(r.dims), ", expected ", name_of(type), " of ", data.size(), " bytes", shape_of(dims));
    read_at(r.offset, data.data(), data.size());
    expect_checksum(r, XXH3_64bits(data.data(), data.size()));
  }
  std::string read_text(std::string_view name) const {
    const record& r = require(name);
    std::string text(std::size_t(r.bytes), '\0');
    read_at(r.offset, text.data(), text.size());
    expect_checksum(r, XXH3_64bits(text.data(), text.size()));
    return text;
  }

  /// Reads everything once, in pieces, without keeping it. Errors: errc::checkpoint when a record is damaged.
  void verify() const {
    std::vector<char> piece(1 << 20);
    XXH3_state_t state;
    for (const auto& r : records_) {
      XXH3_64bits_reset(&state);
      for (u64 at = 0; at < r.bytes; at += piece.size()) {
        const std::size_t n = std::size_t(r.bytes - at < piece.size() ? r.bytes - at : piece.size());
        read_at(r.offset + at, piece.data(), n);
        XXH3_64bits_update(&state, piece.data(), n);
      }
      expect_checksum(r, XXH3_64bits_digest(&state));
    }
  }

 private:
  template <class... Parts>
  [[noreturn]] void damaged(u64 offset, const Parts&... parts) const {
    fail(errc::checkpoint, "checkpoint '", path_, "' is damaged at byte ", offset, ": ", parts...,
         ": use an older checkpoint");
  }

  static std::string shape_of(const extents& e) {
    std::string s = " (";
    for (int i = 0; i < e.rank; ++i) s += (i ? ", " : "") + std::to_string(e.d[std::size_t(i)]);
    return s + ")";
  }

  void read_at(u64 offset, void* data, std::size_t size) const {
    char* p = static_cast<char*>(data);
    while (size > 0) {
      const auto n = ::pread(file_.get(), p, size, off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errc::checkpoint, "cannot read checkpoint '", path_, "' at byte ", offset, ": ", std::strerror(errno));
      if (n == 0) damaged(offset, "the file ends, ", size, " more bytes were expected");
      p += n;
      offset += u64(n);
      size -= std::size_t(n);
    }
  }

  void read_header() {
    if (size_ < detail::checkpoint_header_bytes + detail::end_bytes)
      damaged(0, "the file has ", size_, " bytes, expected ", detail::checkpoint_header_bytes + detail::end_bytes, " or more");
    detail::checkpoint_header h;
    read_at(0, h.data(), detail::checkpoint_header_bytes);
    if (std::memcmp(h.data(), detail::checkpoint_magic, 8) != 0)
      fail(errc::checkpoint, "'", path_, "' is not a checkpoint: its first 8 bytes are not FLMCKPT");
    if (h.get<u32>(8) != detail::checkpoint_version)
      fail(errc::checkpoint, "checkpoint '", path_, "' has format version ", h.get<u32>(8), ", this program reads ",
           detail::checkpoint_version, ": use the program that wrote it");
    if (!h.is_sealed()) damaged(56, "the header's checksum is wrong");
    info_ = {h.get<u64>(16), h.get<u64>(24)};
    chain_.add(h.get<u64>(56));
  }

  /// Returns where the next record, or the end, begins.
  u64 read_record(u64 at) {
    const u64 limit = size_ - detail::end_bytes;
    if (limit - at < detail::record_header_bytes) damaged(at, limit - at, " bytes before the end, too few for a record");
    detail::record_header h;
    read_at(at, h.data(), detail::record_header_bytes);
    if (h.get<u32>(0) != detail::record_magic) damaged(at, "no record begins here");
    const u64 name_bytes = h.get<u16>(4), data_at = at + detail::record_header_bytes + detail::padded(name_bytes);
    if (name_bytes == 0 || name_bytes > detail::longest_record_name || data_at > limit)
      damaged(at + 4, "a name of ", name_bytes, " bytes, expected 1 to ", detail::longest_record_name);
    record r;
    r.name.resize(std::size_t(name_bytes));
    read_at(at + detail::record_header_bytes, r.name.data(), r.name.size());
    if (!h.is_sealed(r.name)) damaged(at + 56, "the checksum of a record's header is wrong");
    if (!by_name_.emplace(r.name, records_.size()).second) damaged(at, "record '", r.name, "' comes twice");
    r.bytes = h.get<u64>(40);
    r.checksum = h.get<u64>(48);
    r.offset = data_at;
    if (r.bytes > limit - data_at)
      damaged(at + 40, "record '", r.name, "' of ", r.bytes, " bytes, the file has ", limit - data_at, " left");
    read_shape(h, at, r);
    chain_.add(h.get<u64>(56));
    records_.push_back(std::move(r));
    return data_at + detail::padded(records_.back().bytes);
  }

  void read_shape(const detail::record_header& h, u64 at, record& r) const {
    const u8 type = h.get<u8>(6), rank = h.get<u8>(7);
    if (type > u8(dtype::int8)) damaged(at + 6, "element type ", int(type), ", expected 0 to ", int(dtype::int8));
    if (rank > max_rank) damaged(at + 7, "rank ", int(rank), ", expected 0 to ", max_rank);
    r.type = dtype(type);
    r.dims.rank = rank;
    u64 left = r.bytes / size_of(r.type);
    bool fits = r.bytes % size_of(r.type) == 0, empty = false;
    u64 count = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      const i64 d = h.get<i64>(8 + 8 * i);
      r.dims.d[i] = d;
      if (d < 0) damaged(at + 8 + 8 * i, "extent ", d, " of record '", r.name, "'");
      empty = empty || d == 0;
    }
    for (std::size_t i = 0; i < rank && !empty && fits; ++i) {
      const u64 d = u64(r.dims.d[i]);
      fits = d <= left;
      if (fits) count *= d, left = r.bytes / size_of(r.type) / count;
    }
    if (!fits || (empty ? 0 : count) != r.bytes / size_of(r.type))
      damaged(at + 8, "record '", r.name, "' has ", r.bytes, " bytes, its shape", shape_of(r.dims), " is of another size");
  }

  void read_end(u64 at) {
    if (at + detail::end_bytes != size_) damaged(at, "the last record ends here, the file has ", size_, " bytes");
    detail::checkpoint_end e;
    read_at(at, e.data(), detail::end_bytes);
    if (e.get<u32>(0) != detail::end_magic) damaged(at, "the end is missing: the file was cut off");
    if (!e.is_sealed()) damaged(at + 24, "the checksum of the end is wrong");
    if (e.get<u32>(4) != records_.size()) damaged(at + 4, records_.size(), " records, expected ", e.get<u32>(4));
    if (e.get<u64>(8) != size_) damaged(at + 8, "the file has ", size_, " bytes, expected ", e.get<u64>(8));
    if (e.get<u64>(16) != chain_.value()) damaged(at + 16, "the records are not those that were written");
  }

  const record& require(std::string_view name) const {
    const record* r = find(name);
    if (!r) fail(errc::checkpoint, "checkpoint '", path_, "' has no record '", name, "' among its ", records_.size());
    return *r;
  }
  void expect_checksum(const record& r, u64 found) const {
    if (found != r.checksum) damaged(r.offset, "the data of record '", r.name, "' has another checksum than when it was written");
  }

  std::string path_;
  detail::descriptor file_;
  u64 size_ = 0;
  checkpoint_info info_;
  std::vector<record> records_;
  std::unordered_map<std::string, std::size_t> by_name_;
  detail::header_chain chain_;
};

}  // namespace fusionllm::inline v0
