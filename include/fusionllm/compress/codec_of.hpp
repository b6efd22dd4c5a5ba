// SPDX-License-Identifier: Apache-2.0
// A codec from a compressor: everything that is the same for all of them. On the way out: limits, element types,
// the search for infinities and NaNs, the difference to what both ends know, the forward mask, the header. On the way
// in the same backwards, where the header must agree with what this end waits for.
#pragma once

#include <string_view>
#include <vector>

#include "codec.hpp"
#include "compressor.hpp"
#include "element.hpp"
#include "masking.hpp"

namespace fusionllm::inline v0 {

template <class C>
class codec_of final : public codec {
  static_assert(check_compressor<C>::value);

 public:
  using codec::decode;
  using codec::encode;

  explicit codec_of(C compressor, codec_limits limits = {}) : compressor_(std::move(compressor)), limits_(limits) {}

  std::string_view label() const override { return C::label; }
  u8 wire_id() const override { return u8(C::wire_id); }
  bool lossless() const override {
    if constexpr (requires { C::lossless; }) return C::lossless;
    return false;
  }
  bool adaptive() const override {
    if constexpr (requires { C::adaptive; }) return C::adaptive;
    return false;
  }
  void set_ratio(double ratio) override {
    if constexpr (requires { compressor_.set_ratio(ratio); }) compressor_.set_ratio(ratio);
  }

  void encode(const tensor_in& x, const link_context& context, std::vector<std::byte>& frame, mask* made) override {
    detail::check_extents(x.rows, x.columns, limits_, context);
    const i64 n = x.rows * x.columns;
    if (const i64 at = detail::first_non_finite_element(x.data, x.type, n); at >= 0) not_finite(x, at);
    payload_header header{wire_id(), x.type, detail::restricts(context), context.known != nullptr, x.rows,
                          x.columns, {}};
    frame.resize(std::size_t(payload_header_bytes));
    if (as_bytes(x.type)) {
      header.difference = false;
      header.form = encode_bytes(x, context, frame);
      inner_.keep_all(0, 0);
    } else {
      const float* values = difference(x, context);
      if (header.masked) {
        grow(picked_, context.forward->count());
        detail::pick(values, 4, *context.forward, picked_.data());
        values = picked_.data();
      }
      const matrix_extent inside = detail::extent_within(x.rows, x.columns, context.forward);
      inner_.keep_all(inside.rows, inside.columns);
      header.form = compressor_.encode(state_, {values, inside}, frame, &inner_);
    }
    header.write(frame.data());
    if (made != nullptr) detail::compose(x.rows, x.columns, context.forward, inner_, *made);
  }

  void decode(const_byte_span frame, const tensor_out& x, const link_context& context, mask* seen) override {
    detail::check_extents(x.rows, x.columns, limits_, context);
    const payload_header header = payload_header::read(frame);
    check(header, i64(frame.size()), x, detail::restricts(context), context.known != nullptr);
    const const_byte_span body = frame.subspan(std::size_t(payload_header_bytes));
    const i64 n = x.rows * x.columns;
    if (as_bytes(x.type)) {
      decode_bytes(header.form, body, x, context);
      inner_.keep_all(0, 0);
    } else {
      const matrix_extent inside = detail::extent_within(x.rows, x.columns, context.forward);
      inner_.keep_all(inside.rows, inside.columns);
      float* whole = x.type == dtype::f32 ? static_cast<float*>(x.data) : grow(whole_, n);
      float* values = header.masked ? grow(picked_, inside.elements()) : whole;
      compressor_.decode(state_, header.form, body, {values, inside}, &inner_);
      if (const i64 at = first_non_finite(values, inside.elements()); at >= 0) bad_entry(at, values[at]);
      if (header.masked) {
        detail::clear(whole, 4 * n);
        detail::place(values, 4, *context.forward, whole);
      }
      if (context.known != nullptr)
        for (i64 i = 0; i < n; ++i) whole[i] += context.known->data[i];
      if (x.type != dtype::f32)
        for (i64 i = 0; i < n; ++i) detail::put_real(x.data, x.type, i, whole[i]);
    }
    if (seen != nullptr) detail::compose(x.rows, x.columns, context.forward, inner_, *seen);
  }

  std::optional<top_k_shape> shape_of(dtype type, const matrix_extent& e) const override {
    if (as_bytes(type))
      return top_k_shape{value_coding::bytes, position_coding::dense, true, e.columns, e.elements(), e.elements() * i64(size_of(type))};
    if constexpr (requires {
                    { compressor_.shape(e) } -> std::same_as<top_k_shape>;
                  })
      return compressor_.shape(e);
    return {};
  }

  frame_parts parts_of(const_byte_span frame, dtype type, const mask_outline& outline) override {
    const tensor_out x{nullptr, type, outline.rows, outline.columns};
    detail::check_extents(x.rows, x.columns, limits_, {});
    const payload_header header = payload_header::read(frame);
    check(header, i64(frame.size()), x, outline.restricts, false);
    const const_byte_span body = frame.subspan(std::size_t(payload_header_bytes));
    const matrix_extent inside = outline.inside();
    inner_.keep_all(inside.rows, inside.columns);
    if (as_bytes(type)) {
      check_bytes(header.form, body, type, inside.elements());
      return {nullptr, body, &inner_};
    }
    const float* values = nullptr;
    if constexpr (requires { compressor_.decode_entries(state_, header.form, body, inside, &inner_); })
      values = compressor_.decode_entries(state_, header.form, body, inside, &inner_);
    else
      values = dense_entries(header.form, body, inside);
    if (const i64 at = first_non_finite(values, inner_.count()); at >= 0) bad_entry(at, values[at]);
    return {values, {}, &inner_};
  }

  i64 max_encoded_bytes(i64 rows, i64 columns, dtype type) const override {
    const i64 as_they_are = rows * columns * i64(size_of(type));
    return payload_header_bytes
           + (as_bytes(type) ? as_they_are : compressor_.max_body_bytes({rows, columns, rows * columns}));
  }

  i64 encoded_bytes(i64 rows, i64 columns, i64 masked, bool even_rows) const override {
    matrix_extent e{rows, columns, rows * columns};
    if (masked >= 0 && masked < e.whole) e = detail::masked_extent(rows, e.whole, masked, even_rows);
    return payload_header_bytes + compressor_.body_bytes(e);
  }

  i64 kept(i64 rows, i64 columns) const override {
    const matrix_extent e{rows, columns, rows * columns};
    if constexpr (requires { compressor_.kept(e); }) return compressor_.kept(e);
    return e.whole;
  }

 private:
  /// Integers are never approximated, and a lossless compressor approximates nothing.
  bool as_bytes(dtype type) const { return !detail::is_real(type) || (lossless() && type != dtype::f32); }

  static float* grow(std::vector<float>& v, i64 n) {
    if (i64(v.size()) < n) v.resize(std::size_t(n));
    return v.data();
  }

  [[noreturn]] void not_finite(const tensor_in& x, i64 at) const {
    fail(errc::numeric, label(), ": entry ", at, " (row ", at / x.columns, ", column ", at % x.columns, ") of a ",
         x.rows, " x ", x.columns, " tensor to send is ", detail::real_element(x.data, x.type, at),
         ": only finite values are sent; lower the learning rate or the loss scale");
  }

  /// The values to encode as fp32: the tensor's own memory where it can be, else scratch memory.
  const float* difference(const tensor_in& x, const link_context& context) {
    const float* own = static_cast<const float*>(x.data);
    if (x.type == dtype::f32 && context.known == nullptr) return own;
    const i64 n = x.rows * x.columns;
    float* v = grow(whole_, n);
    for (i64 i = 0; i < n; ++i) v[i] = x.type == dtype::f32 ? own[i] : float(detail::real_element(x.data, x.type, i));
    if (context.known != nullptr)
      for (i64 i = 0; i < n; ++i) v[i] -= context.known->data[i];
    if (const i64 at = first_non_finite(v, n); at >= 0)
      fail(errc::numeric, label(), ": entry ", at, " of a tensor to send, ", detail::real_element(x.data, x.type, at),
           ", does not fit fp32", context.known != nullptr ? " as a difference" : "", ": scale it down");
    return v;
  }

  body_form encode_bytes(const tensor_in& x, const link_context& context, std::vector<std::byte>& frame) {
    const bool masked = detail::restricts(context);
    const i64 count = masked ? context.forward->count() : x.rows * x.columns;
    const i64 size = i64(size_of(x.type));
    if (masked) {
      detail::pick(x.data, std::size_t(size), *context.forward, extend(frame, count * size));
    } else {
      const std::byte* from = static_cast<const std::byte*>(x.data);
      frame.insert(frame.end(), from, from + count * size);
    }
    return {value_coding::bytes, position_coding::dense, true, 0, count};
  }

  void decode_bytes(const body_form& form, const_byte_span body, const tensor_out& x, const link_context& context) {
    const bool masked = detail::restricts(context);
    const i64 count = masked ? context.forward->count() : x.rows * x.columns;
    const i64 size = i64(size_of(x.type));
    check_bytes(form, body, x.type, count);
    if (!masked) return detail::copy_bytes(x.data, body.data(), count * size);
    detail::clear(x.data, x.rows * x.columns * size);
    detail::place(body.data(), std::size_t(size), *context.forward, x.data);
  }

  void check_bytes(const body_form& form, const_byte_span body, dtype type, i64 count) const {
    const i64 size = i64(size_of(type));
    if (form.values != value_coding::bytes || form.count != count || i64(body.size()) != count * size)
      fail(errc::protocol, label(), ": a frame of ", form.count, " plain elements in ", body.size(),
           " bytes: expected ", count, " of ", size, " bytes each");
    if (const i64 at = detail::first_non_finite_element(body.data(), type, count); at >= 0)
      fail(errc::protocol, label(), ": entry ", at, " of a frame is not finite: no sender sends it");
  }
  [[noreturn]] void bad_entry(i64 at, float value) const {
    fail(errc::protocol, label(), ": entry ", at, " of a frame decodes to ", value, ": no sender sends it");
  }

  /// What a compressor that decodes whole matrices only keeps of one.
  const float* dense_entries(const body_form& form, const_byte_span body, const matrix_extent& inside) {
    float* whole = grow(whole_, inside.elements());
    compressor_.decode(state_, form, body, {whole, inside}, &inner_);
    if (inner_.all) return whole;
    float* kept_values = grow(picked_, inner_.count());
    detail::pick(whole, 4, inner_, kept_values);
    return kept_values;
  }

  void check(const payload_header& h, i64 size, const tensor_out& x, bool masked, bool difference) const {
    if (h.wire_id != wire_id())
      fail(errc::protocol, "a frame of compressor ", int(h.wire_id), " where ", label(), " (", int(wire_id()),
           ") was expected: both ends of a link take the same plan");
    if (h.rows != x.rows || h.columns != x.columns || h.type != x.type)
      fail(errc::protocol, label(), ": a frame of ", h.rows, " x ", h.columns, ' ', name_of(h.type), " where ", x.rows,
           " x ", x.columns, ' ', name_of(x.type), " was expected");
    if (h.masked != masked || (h.difference != difference && !as_bytes(x.type)))
      fail(errc::protocol, label(), ": a frame ", h.masked ? "within" : "without", " a forward mask and ",
           h.difference ? "with" : "without", " a reference: this end expected otherwise");
    if (h.form.count > x.rows * x.columns)
      fail(errc::protocol, label(), ": a frame of ", h.form.count, " entries for a tensor of ", x.rows * x.columns);
    if (size > max_encoded_bytes(x.rows, x.columns, x.type))
      fail(errc::protocol, label(), ": a frame of ", size, " bytes where ",
           max_encoded_bytes(x.rows, x.columns, x.type), " is the most that it may have");
  }

  C compressor_;
  codec_limits limits_;
  typename C::state state_{};
  std::vector<float> whole_;   // the tensor as fp32, where it is not
  std::vector<float> picked_;  // the entries of the forward mask
  mask inner_;                 // what the compressor kept of what it was given
};

}  // namespace fusionllm::inline v0
