// SPDX-License-Identifier: Apache-2.0
// An IDX file of bytes, the format of MNIST (LeCun, Cortes, Burges, "The MNIST database", 1998): two zeros, the type of
// elements, the number of extents, the extents as big-endian 32-bit integers, the elements. A plain file is mapped; one
// packed by gzip (told by its content) is unpacked into memory, after its extents were found to be possible.
#pragma once

#include <array>
#include <new>
#include <vector>

#include "idx_file_gzip.hpp"
#include "mapped_file.hpp"

namespace fusionllm::inline v0 {

namespace detail {

struct idx_header {
  int rank = 0;
  std::array<i64, 4> dims{};
  u64 values = 1;  ///< product of the extents

  std::size_t bytes() const { return 4 + 4 * std::size_t(rank); }
};

/// Of the first bytes of a file, up to 20. Errors: errc::data.
inline idx_header read_idx_header(std::span<const u8> begin, const std::string& path) {
  const auto refuse = [&](const auto&... parts) { fail(errc::data, "IDX file '", path, "' ", parts...); };
  if (begin.size() < 4) refuse("has ", begin.size(), " bytes, expected a header of 8 or more: it is cut off");
  if (begin[0] != 0 || begin[1] != 0)
    refuse("does not begin with two zeros, found ", int(begin[0]), " and ", int(begin[1]), ": it is of another format");
  if (begin[2] != 8) refuse("has elements of type ", int(begin[2]), ", expected 8 (unsigned bytes)");
  idx_header h;
  h.rank = begin[3];
  if (h.rank < 1 || h.rank > 4) refuse("has ", h.rank, " extents, expected 1 to 4");
  if (begin.size() < h.bytes())
    refuse("has ", begin.size(), " bytes, expected a header of ", h.bytes(), " for ", h.rank, " extents: it is cut off");
  for (int i = 0; i < h.rank; ++i) {
    const u8* p = begin.data() + 4 + 4 * i;
    const u64 d = u64(p[0]) << 24 | u64(p[1]) << 16 | u64(p[2]) << 8 | u64(p[3]);
    if (d == 0) refuse("has an extent of 0 (number ", i, "), expected 1 or more");
    if (h.values > (u64(1) << 62) / d) refuse("has extents that multiply to more than 2^62: its header is damaged");
    h.values *= d;
    h.dims[std::size_t(i)] = i64(d);
  }
  return h;
}

}  // namespace detail

class idx_file {
 public:
  /// The most that a packed file may unpack to; a plain file of any size is mapped.
  static constexpr u64 largest_unpacked = u64(1) << 32;

  /// Errors: errc::data: missing, of another format, cut off, extents that are not those of the content.
  explicit idx_file(std::string path) : path_(std::move(path)), file_(path_, errc::data, "IDX file") {
    if (detail::is_gzip(file_.bytes())) unpack();
    else map();
  }
  idx_file(idx_file&&) noexcept = default;

  const std::string& path() const { return path_; }
  int rank() const { return header_.rank; }
  i64 extent(int axis) const { return header_.dims[std::size_t(axis)]; }
  /// All elements, last axis fastest.
  std::span<const u8> values() const { return unpacked_.empty() ? mapped() : std::span<const u8>(unpacked_); }

 private:
  std::span<const u8> whole() const { return {reinterpret_cast<const u8*>(file_.bytes().data()), file_.size()}; }
  std::span<const u8> mapped() const { return whole().subspan(header_.bytes()); }

  void map() {
    header_ = detail::read_idx_header(whole().first((std::min)(file_.size(), std::size_t(20))), path_);
    if (const u64 held = mapped().size(); held != header_.values)
      fail(errc::data, "IDX file '", path_, "' holds ", held, " elements, its extents multiply to ", header_.values, ": it is ",
           held < header_.values ? "cut off" : "damaged or has bytes behind its end");
  }

  void unpack() {
    detail::gzip_reader packed(file_.bytes(), path_);
    std::array<u8, 20> begin;
    std::size_t read = packed.read(std::span(begin).first(4));
    if (read == 4 && begin[3] <= 4) read += packed.read(std::span(begin).subspan(4, 4 * std::size_t(begin[3])));
    header_ = detail::read_idx_header(std::span(begin).first(read), path_);
    if (header_.values / detail::gzip_reader::largest_ratio > file_.size())
      fail(errc::data, "IDX file '", path_, "' says that it holds ", header_.values, " elements, which its ", file_.size(),
           " packed bytes cannot: it is cut off or damaged");
    if (header_.values > largest_unpacked)
      fail(errc::data, "IDX file '", path_, "' unpacks to ", header_.values, " bytes, expected ", largest_unpacked,
           " at most: unpack it with gunzip, plain files may be larger than memory");
    try {
      unpacked_.resize(std::size_t(header_.values));
    } catch (const std::bad_alloc&) {
      fail(errc::resource, "IDX file '", path_, "' unpacks to ", header_.values, " bytes, which do not fit into memory");
    }
    if (const std::size_t held = packed.read(unpacked_); held != unpacked_.size())
      fail(errc::data, "IDX file '", path_, "' holds ", held, " elements, its extents multiply to ", header_.values, ": it is cut off");
    packed.expect_end();
  }

  std::string path_;
  mapped_file file_;
  detail::idx_header header_;
  std::vector<u8> unpacked_;
};

}  // namespace fusionllm::inline v0
