// SPDX-License-Identifier: Apache-2.0
// Frames of tensors that lie in a device's memory. Where the codec tells how its frames are made, the device selects,
// picks and packs, and only encoded bytes and as much as they hold cross to and from the host; a codec that does not
// (a user's) works on copies of whole tensors in host memory. The bytes are the same.
#pragma once

#include <cstring>

#include "codec.hpp"
#include "device_packing.hpp"
#include "payload_header.hpp"

namespace fusionllm::inline v0 {

/// A mask whose positions lie in the device's memory.
struct device_mask {
  mask outline;  ///< extents, `all` and `per_row`; its positions are empty
  i64 count = 0;
  device_array positions;

  void keep_all(i64 rows, i64 columns) {
    outline.keep_all(rows, columns);
    count = rows * columns;
  }
};

/// One direction of a link, as `codec` is: one frame at a time, from `encode` to `finish`.
class device_codec {
 public:
  /// Both stay with the caller.
  device_codec(codec& c, device_packing& device) : codec_(c), device_(device), memory_(device.memory()), exponent_(memory_, sizeof(int)) {}

  /// Submits the work of a frame. `forward`, `made` as for `codec::encode`; what is to be sent has been searched for
  /// infinities. Buffers keep their size, so that a steady step allocates none.
  void encode(const tensor_in& x, const device_mask* forward, device_mask* made) {
    x_ = x;
    const mask_outline o = outline_of(x.rows, x.columns, forward);
    const matrix_extent inside = o.inside();
    const auto shape = codec_.shape_of(x.type, inside);
    packs_ = shape.has_value();
    if (!packs_) return copy_whole(x, forward, made);
    const i64 n = inside.elements();
    frame_bytes_ = payload_header_bytes + shape->bytes;
    header_ = {codec_.wire_id(), x.type, o.restricts, false, x.rows, x.columns, {shape->values, shape->positions, shape->by_row, 0, shape->count}};
    frame_.grow(memory_, u64(frame_bytes_));
    const void* values = masked(x, o, forward, shape->values == value_coding::bytes, n);
    if (shape->count < n) {
      const u32* kept = select(static_cast<const float*>(values), inside, *shape);
      values = pick(values, 4, kept, shape->count);
      pack_positions(kept, n, *shape);
      if (made != nullptr) keep(made, forward, *shape);
    } else if (made != nullptr) {
      forward != nullptr && !forward->outline.all ? copy_mask(*forward, *made) : made->keep_all(x.rows, x.columns);
    }
    pack_values(values, *shape, payload_header_bytes + position_bytes(shape->positions, n, shape->count));
  }

  /// The frame, once a ticket taken after `encode` is reached. A host codec encodes only now: errors as `codec::encode`.
  void finish(std::vector<std::byte>& frame, device_mask* made) {
    if (!packs_) {
      mask host_made;
      codec_.encode({whole_.data(), x_.type, x_.rows, x_.columns}, {host_forward(), nullptr}, frame, made ? &host_made : nullptr);
      if (made != nullptr) upload(host_made, *made);
      return;
    }
    frame.resize(std::size_t(frame_bytes_));
    std::memcpy(frame.data(), frame_.data(), std::size_t(frame_bytes_));
    header_.form.exponent = header_.form.values == value_coding::f16 ? *exponent_.as<int>() : 0;
    header_.write(frame.data());
  }

  /// Submits what makes a tensor of a frame, which may go when this returns. Errors: as `codec::decode`.
  void decode(const_byte_span frame, const tensor_out& x, const device_mask* forward, device_mask* seen) {
    const mask_outline o = outline_of(x.rows, x.columns, forward);
    const i64 n = x.rows * x.columns, size = i64(size_of(x.type));
    if (!codec_.shape_of(x.type, o.inside())) return decode_whole(frame, x, forward, seen);
    const frame_parts parts = codec_.parts_of(frame, x.type, o);
    const i64 count = parts.kept->count();
    const bool bytes = parts.values == nullptr, direct = !o.restricts && parts.kept->all;
    const void* from = bytes ? static_cast<const void*>(parts.bytes.data()) : parts.values;
    const i64 element = bytes ? size : 4;
    const bool converts = !bytes && x.type != dtype::f32;
    void* to = direct && !converts ? x.data : grown(picked_, u64(count * element));
    memory_.upload(to, from, u64(count * element));
    if (!direct) {
      void* whole = converts ? grown(wide_, u64(n) * 4) : x.data;
      device_.place(to, std::size_t(element), positions_of(*parts.kept, forward), count, whole, n);
      to = whole;
    }
    if (converts) device_.from_f32(static_cast<const float*>(to), x.type, n, x.data);
    if (seen != nullptr) note(*parts.kept, forward, x, *seen);
  }

 private:
  static mask_outline outline_of(i64 rows, i64 columns, const device_mask* forward) {
    if (forward == nullptr || forward->outline.all) return {rows, columns, false, rows * columns, true};
    if (forward->outline.rows != rows || forward->outline.columns != columns)
      fail(errc::model, "a forward mask of ", forward->outline.rows, " x ", forward->outline.columns, " for a tensor of ", rows, " x ", columns);
    return {rows, columns, true, forward->count, forward->outline.per_row > 0};
  }
  void* grown(device_array& a, u64 bytes) {
    a.grow(memory_, bytes);
    return a.data();
  }
  const void* pick(const void* x, std::size_t size, const u32* positions, i64 k) {
    void* to = grown(picked_, u64(k) * size);
    device_.pick(x, size, positions, k, to);
    return to;
  }

  // --- the way out
  /// What is encoded: the tensor or the entries of its forward mask, as they are or as fp32.
  const void* masked(const tensor_in& x, const mask_outline& o, const device_mask* forward, bool as_bytes, i64 n) {
    const void* from = x.data;
    const std::size_t size = as_bytes ? size_of(x.type) : 4;
    if (!as_bytes && x.type != dtype::f32) {
      device_.to_f32(x.data, x.type, x.rows * x.columns, static_cast<float*>(grown(wide_, u64(x.rows * x.columns) * 4)));
      from = wide_.data();
    }
    if (!o.restricts) return from;
    void* to = grown(masked_, u64(n) * size);
    device_.pick(from, size, forward->positions.as<u32>(), n, to);
    return to;
  }
  const u32* select(const float* values, const matrix_extent& inside, const top_k_shape& s) {
    auto* kept = static_cast<u32*>(grown(kept_, u64(s.count) * sizeof(u32)));
    if (s.by_row) device_.select_rows(values, inside.rows, inside.columns, s.k, kept);
    else device_.select(values, inside.elements(), s.k, kept, grown(workspace_, device_.select_bytes(inside.elements(), s.k)));
    return kept;
  }
  void pack_positions(const u32* kept, i64 n, const top_k_shape& s) {
    const bool bitmap = s.positions == position_coding::bitmap;
    if (s.count == 0 && !bitmap) return;
    const int low = bitmap ? 0 : detail::low_bits(n, s.count);
    const i64 lows = bitmap ? 0 : detail::low_bytes(n, s.count);
    const i64 highs = position_bytes(s.positions, n, s.count) - lows;
    auto* to = static_cast<u32*>(grown(low_bits_, u64(lows + 7) / 8 * 8));
    device_.low_bits(kept, s.count, low, to);
    memory_.download(frame_.data() + payload_header_bytes, to, u64(lows));
    const u64 padded = u64(highs + 7) / 8 * 8;
    to = static_cast<u32*>(grown(high_bits_, padded));
    device_.set_bits(kept, s.count, low, !bitmap, to, padded);
    memory_.download(frame_.data() + payload_header_bytes + lows, to, u64(highs));
  }
  void pack_values(const void* values, const top_k_shape& s, i64 at) {
    const bool as_they_lie = s.values == value_coding::bytes || s.values == value_coding::f32;
    const i64 bytes = frame_bytes_ - at;
    if (!as_they_lie) {
      void* to = grown(packed_, u64(bytes + 1));
      device_.write_values(s.values, static_cast<const float*>(values), s.count, to, exponent_.as<int>(), grown(scratch_, device_packing::value_scratch_bytes));
      values = to;
    }
    memory_.download(frame_.data() + at, values, u64(bytes));
  }
  void keep(device_mask* made, const device_mask* forward, const top_k_shape& s) {
    const bool within = forward != nullptr && !forward->outline.all;
    const i64 per_row = s.by_row ? s.k : 0;
    made->outline = {x_.rows, x_.columns, false, within && forward->outline.per_row == 0 ? 0 : per_row, {}};
    made->count = s.count;
    made->positions.grow(memory_, u64(s.count) * sizeof(u32));
    memory_.copy(made->positions.data(), kept_.data(), u64(s.count) * sizeof(u32));
    if (within) device_.compose(forward->positions.as<u32>(), made->positions.as<u32>(), s.count);
  }
  void copy_mask(const device_mask& from, device_mask& to) {
    if (&from == &to) return;
    to.outline = from.outline;
    to.count = from.count;
    to.positions.grow(memory_, u64(from.count) * sizeof(u32));
    memory_.copy(to.positions.data(), from.positions.data(), u64(from.count) * sizeof(u32));
  }

  // --- the way in
  /// Positions in the tensor of entries that `kept` names inside the forward mask.
  const u32* positions_of(const mask& kept, const device_mask* forward) {
    const bool within = forward != nullptr && !forward->outline.all;
    if (kept.all) return forward->positions.as<u32>();
    auto* to = static_cast<u32*>(grown(kept_, u64(kept.count()) * sizeof(u32)));
    memory_.upload(to, kept.positions.data(), u64(kept.count()) * sizeof(u32));
    if (within) device_.compose(forward->positions.as<u32>(), to, kept.count());
    return to;
  }
  void note(const mask& kept, const device_mask* forward, const tensor_out& x, device_mask& seen) {
    const bool within = forward != nullptr && !forward->outline.all;
    if (kept.all) return within ? copy_mask(*forward, seen) : seen.keep_all(x.rows, x.columns);
    seen.outline = {x.rows, x.columns, false, within && forward->outline.per_row == 0 ? 0 : kept.per_row, {}};
    seen.count = kept.count();
    seen.positions.grow(memory_, u64(seen.count) * sizeof(u32));
    memory_.copy(seen.positions.data(), kept_.data(), u64(seen.count) * sizeof(u32));
  }

  // --- a codec that works in host memory only
  void copy_whole(const tensor_in& x, const device_mask* forward, device_mask* made) {
    const u64 bytes = u64(x.rows * x.columns) * size_of(x.type);
    whole_.grow(memory_, bytes);
    memory_.download(whole_.data(), x.data, bytes);
    fetch(forward);
    if (made != nullptr) made->keep_all(x.rows, x.columns);
  }
  void decode_whole(const_byte_span frame, const tensor_out& x, const device_mask* forward, device_mask* seen) {
    const u64 bytes = u64(x.rows * x.columns) * size_of(x.type);
    whole_.grow(memory_, bytes);
    fetch(forward);
    mask host_seen;
    codec_.decode(frame, {whole_.data(), x.type, x.rows, x.columns}, {host_forward(), nullptr}, seen ? &host_seen : nullptr);
    memory_.upload(x.data, whole_.data(), bytes);
    if (seen != nullptr) upload(host_seen, *seen);
  }
  void fetch(const device_mask* forward) {
    has_forward_ = forward != nullptr;
    if (!has_forward_) return;
    forward_ = forward->outline;
    if (forward_.all) return;
    forward_.positions.resize(std::size_t(forward->count));
    memory_.read(forward_.positions.data(), forward->positions.data(), u64(forward->count) * sizeof(u32));
  }
  const mask* host_forward() const { return has_forward_ ? &forward_ : nullptr; }
  void upload(const mask& from, device_mask& to) {
    to.count = from.count();
    to.outline = {from.rows, from.columns, from.all, from.per_row, {}};
    if (from.all) return;
    to.positions.grow(memory_, u64(to.count) * sizeof(u32));
    memory_.upload(to.positions.data(), from.positions.data(), u64(to.count) * sizeof(u32));
  }

  codec& codec_;
  device_packing& device_;
  device_memory& memory_;
  tensor_in x_;
  bool packs_ = true;
  payload_header header_;
  i64 frame_bytes_ = 0;
  shared_array exponent_, frame_;  ///< the frame but for its header
  device_array wide_, masked_, kept_, picked_, low_bits_, high_bits_, packed_, scratch_, workspace_;
  shared_array whole_;
  mask forward_;
  bool has_forward_ = false;
};

}  // namespace fusionllm::inline v0
