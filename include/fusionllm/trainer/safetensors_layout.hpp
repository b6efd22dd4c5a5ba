// SPDX-License-Identifier: Apache-2.0
// Whether the tensors that a safetensors header names fit their shapes, each other and the file: they cover its data,
// each byte once.
#pragma once

#include <tuple>

#include "safetensors_header.hpp"

namespace fusionllm::inline v0::detail {

/// "[2, 3]"
inline std::string shape_of(const std::vector<u64>& shape) {
  std::string s = "[";
  for (u64 d : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(d);
  return s + "]";
}

/// Checks every tensor against its type and shape, and all against the bytes of the file, which they must cover, each
/// byte once. Places become places in the file; tensors are sorted by them.
inline void check_layout(const std::string& path, std::vector<stored_tensor>& tensors, u64 data_at, u64 file_size) {
  for (stored_tensor& t : tensors) {
    const auto damaged = [&](const auto&... parts) {
      weights_damaged(path, t.said_at, "tensor '", printable(t.name), "': ", parts...);
    };
    const u64 bits = info_of(t.type).bits;
    t.count = 1;
    for (u64 d : t.shape) t.count = d == 0 ? 0 : t.count;
    for (u64 d : t.shape) {
      if (t.count == 0) break;
      if (d > ~u64(0) / bits / t.count) damaged("the shape ", shape_of(t.shape), " has more bytes than 64 bits can count");
      t.count *= d;
    }
    if (t.begin > t.end) damaged("begins at ", t.begin, ", behind its end at ", t.end);
    if (t.end > file_size - data_at)
      damaged("ends at ", t.end, ", the file has ", file_size - data_at, " bytes of data: it was cut off");
    if (t.count * bits % 8 != 0 || t.count * bits / 8 != t.end - t.begin)
      damaged(info_of(t.type).name, ' ', shape_of(t.shape), " takes ", t.count * bits / 8, " bytes, it has ",
              t.end - t.begin);
    t.begin += data_at;
    t.end += data_at;
  }
  std::sort(tensors.begin(), tensors.end(), [](const stored_tensor& a, const stored_tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  u64 at = data_at;
  const stored_tensor* before = nullptr;
  for (const stored_tensor& t : tensors) {
    const std::string behind = before ? "tensor '" + printable(before->name) + "'" : "the header";
    if (t.begin < at)
      weights_damaged(path, t.begin, "tensor '", printable(t.name), "' begins here, inside ", behind, ", which ends at ", at);
    if (t.begin > at)
      weights_damaged(path, at, "a gap of ", t.begin - at, " bytes between ", behind, " and tensor '", printable(t.name), "'");
    at = t.end;
    before = &t;
  }
  if (at != file_size)
    weights_damaged(path, at, file_size - at, " bytes too many behind ",
                    before ? "the last tensor, '" + printable(before->name) + "'" : std::string("the header"));
}

}  // namespace fusionllm::inline v0::detail
