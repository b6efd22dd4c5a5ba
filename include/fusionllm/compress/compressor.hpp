// SPDX-License-Identifier: Apache-2.0
// The compressor concept: a policy of the seat `compressor_seat` that turns an fp32 matrix into bytes and back.
//
// The policy holds hyper-parameters, its nested `state` the buffers of a run, which grow to their size once. It sees
// only finite fp32 matrices: other element types, forward masks, references that both ends know, headers, limits and
// checks are `codec_of`'s, which makes a codec for one direction of a link from it.
//
//   struct half_the_bytes {
//     using seat = compressor_seat;
//     static constexpr u8 wire_id = 200;                         // 128 to 255 are users'
//     static constexpr std::string_view label = "half_the_bytes";
//     struct state {};
//     i64 body_bytes(const matrix_extent&) const;                // expected, for the planner; exact where it can be
//     i64 max_body_bytes(const matrix_extent&) const;            // never more than this
//     body_form encode(state&, const matrix_in&, std::vector<std::byte>& frame, mask* made) const;  // appends
//     void decode(state&, const body_form&, const_byte_span body, const matrix_out&, mask* seen) const;
//   };
//
// `made` and `seen` come as masks of all entries; a compressor that leaves some out says the same in both. Optional:
// `static C from(const codec_options&)`, `kept(extent)` (entries of the mask), `set_ratio(double)`, and the constants
// `adaptive` (the ratio is chosen a link) and `lossless`; and `top_k_shape shape(extent)` where bodies are made as those of
// top_k.hpp are, which devices with memory of their own then make themselves.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include "../core/seat.hpp"
#include "payload_header.hpp"

namespace fusionllm::inline v0 {

template <class C>
concept has_compressor_seat = std::same_as<typename C::seat, compressor_seat>;

template <class C>
concept has_wire_id = requires {
  { C::wire_id } -> std::convertible_to<u8>;
  { C::label } -> std::convertible_to<std::string_view>;
};

template <class C>
concept has_compressor_state = std::default_initializable<typename C::state>;

template <class C>
concept has_body_sizes = requires(const C& c, const matrix_extent& e) {
  { c.body_bytes(e) } -> std::same_as<i64>;
  { c.max_body_bytes(e) } -> std::same_as<i64>;
};

template <class C>
concept can_encode = requires(const C& c, typename C::state& s, const matrix_in& x, std::vector<std::byte>& f,
                              mask* m) {
  { c.encode(s, x, f, m) } -> std::same_as<body_form>;
};

template <class C>
concept can_decode = requires(const C& c, typename C::state& s, const body_form& form, const_byte_span body,
                              const matrix_out& y, mask* m) {
  c.decode(s, form, body, y, m);
};

template <class C>
concept compressor = has_compressor_seat<C> && has_wire_id<C> && has_compressor_state<C> && has_body_sizes<
    C> && can_encode<C> && can_decode<C>;

/// One assertion a requirement, so that the compiler names the missing one.
template <class C>
struct check_compressor {
  static_assert(has_compressor_seat<C>, "a compressor says: using seat = fusionllm::compressor_seat;");
  static_assert(has_wire_id<C>, "a compressor has static constexpr u8 wire_id and std::string_view label");
  static_assert(has_compressor_state<C>, "a compressor has a nested, default-constructible struct state");
  static_assert(has_body_sizes<C>, "a compressor has i64 body_bytes and max_body_bytes(const matrix_extent&) const");
  static_assert(can_encode<C>,
                "a compressor has body_form encode(state&, const matrix_in&, std::vector<std::byte>&, mask*) const");
  static_assert(can_decode<C>,
                "a compressor has decode(state&, const body_form&, const_byte_span, const matrix_out&, mask*) const");
  static constexpr bool value = compressor<C>;
};

}  // namespace fusionllm::inline v0
