// SPDX-License-Identifier: Apache-2.0
// Reads a safetensors file (https://huggingface.co/docs/safetensors): mapped, so that each process touches only the
// tensors that it needs. Opening checks the whole header; no length is believed before it was compared with the file.
#pragma once

#include "mapped_file.hpp"
#include "safetensors_layout.hpp"
#include "safetensors_values.hpp"

namespace fusionllm::inline v0 {

class safetensors_file {
 public:
  /// Errors: errc::checkpoint: missing, another kind of file (which is named), damaged (tensor and byte are named).
  explicit safetensors_file(std::string path) : path_(std::move(path)), file_(path_, errc::checkpoint, "weights file") {
    const std::string_view all = file_.text();
    if (all.empty()) fail(errc::checkpoint, "weights file '", path_, "' is empty");
    if (all.size() < 8)
      damaged(0, "the file has ", all.size(), " bytes, the length of its header alone takes 8");
    const u64 length = stored_length();
    const char* kind = other_kind();
    if (length == 0 || length > all.size() - 8 || all[8] != '{') {
      if (kind) fail(errc::checkpoint, "weights file '", path_, "' is ", kind, ", expected safetensors");
      if (length == 0) damaged(0, "the header has no bytes");
      if (length > all.size() - 8) damaged(0, "a header of ", length, " bytes, the file has ", all.size() - 8, " behind its length");
      damaged(8, "the header does not begin with {");
    }
    if (length > detail::longest_safetensors_header)
      damaged(0, "a header of ", length, " bytes, the format allows ", detail::longest_safetensors_header);
    detail::header_parser header(path_, all.substr(8, std::size_t(length)));
    header.run();
    tensors_ = std::move(header.tensors);
    metadata_ = std::move(header.metadata);
    detail::check_layout(path_, tensors_, 8 + length, all.size());
    std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  const std::string& path() const { return path_; }
  /// Sorted by name.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null if there is none.
  const stored_tensor* find(std::string_view name) const {
    const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                        [](const stored_tensor& t, std::string_view n) { return t.name < n; });
    return found != tensors_.end() && found->name == name ? &*found : nullptr;
  }
  /// As they are in the file; at any alignment.
  std::span<const std::byte> bytes(const stored_tensor& t) const {
    return file_.bytes().subspan(std::size_t(t.begin), std::size_t(t.end - t.begin));
  }

  /// The first out.size() elements in fp32 or fp64. Errors: errc::checkpoint: of a type that is no weight, fewer
  /// elements, an element that T cannot hold (whole numbers that would be rounded, fp64 beyond fp32).
  template <class T>
  void read(const stored_tensor& t, std::span<T> out) const {
    expect_elements(t, out.size());
    expect_held(t, 0, out.size(), detail::widen(t.type, bytes(t).data(), out.size(), out.data()));
  }
  /// A matrix (out.size() / rows, at least rows) as its transpose (rows, out.size() / rows). Errors: as `read`.
  template <class T>
  void read_transposed(const stored_tensor& t, std::size_t rows, std::span<T> out) const {
    if (out.empty()) return;
    const std::size_t columns = out.size() / rows, stride = std::size_t(t.count) / columns;
    expect_elements(t, (columns - 1) * stride + rows);
    constexpr std::size_t tile = 64;
    const std::size_t size = info_of(t.type).bits / 8;
    T part[tile];
    for (std::size_t r = 0; r < rows; r += tile)
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t n = (std::min)(tile, rows - r), from = c * stride + r;
        expect_held(t, from, n, detail::widen(t.type, bytes(t).data() + from * size, n, part));
        for (std::size_t i = 0; i < n; ++i) out[(r + i) * columns + c] = part[i];
      }
  }

 private:
  template <class... Parts>
  [[noreturn]] void damaged(u64 offset, const Parts&... parts) const {
    detail::weights_damaged(path_, offset, parts...);
  }

  u64 stored_length() const {
    u64 n;
    std::memcpy(&n, file_.bytes().data(), 8);
    return n;
  }

  /// What people name by mistake. A pickle's first bytes can be a header's length: ask only where that is wrong.
  const char* other_kind() const {
    const std::string_view s = file_.text();
    const auto begins = [&](std::string_view with) { return s.substr(0, with.size()) == with; };
    if (begins("PK\3\4")) return "a zip archive with a pickle, as torch.save writes (.bin, .pt; the package safetensors converts it)";
    if (s[0] == '\x80' && s[1] >= 2 && s[1] <= 5) return "a Python pickle, as torch.save wrote (.bin, .pt; the package safetensors converts it)";
    if (begins("GGUF")) return "GGUF";
    if (begins("\x89HDF\r\n")) return "HDF5";
    if (begins("\x93NUMPY")) return "a NumPy array";
    if (begins("\x1f\x8b")) return "compressed with gzip";
    if (begins("FLMCKPT\n")) return "a checkpoint of fusionllm (--checkpoint loads it)";
    if (begins("version https:")) return "a pointer of git-lfs, not the file itself";
    if (begins("{")) return "JSON (an index of shards ends with .json)";
    return nullptr;
  }

  void expect_elements(const stored_tensor& t, std::size_t n) const {
    if (!info_of(t.type).readable)
      fail(errc::checkpoint, "tensor '", printable(t.name), "' at byte ", t.begin, " of '", path_, "' is ",
           info_of(t.type).name, ", which is not supported: convert it to F32, F16 or BF16");
    if (n > t.count)
      fail(errc::checkpoint, "tensor '", printable(t.name), "' of '", path_, "' has ", t.count, " elements, expected ", n);
  }
  void expect_held(const stored_tensor& t, std::size_t from, std::size_t n, std::size_t held) const {
    if (held < n)
      fail(errc::checkpoint, "element ", from + held, " of tensor '", printable(t.name), "' at byte ",
           t.begin + (from + held) * info_of(t.type).bits / 8, " of '", path_, "' is ", info_of(t.type).name,
           " and has another value in the precision of this device");
  }

  std::string path_;
  mapped_file file_;
  std::vector<stored_tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace fusionllm::inline v0
