// SPDX-License-Identifier: Apache-2.0
// The compressors that a program was built with, and the choice among them at run time. A user's list:
//   using my_compressors = fl::compressors<my_compressor, fl::ada_top_k<>, fl::no_compression>;   // the first is the
//   default
// Wire ids: 1 to 127 are the library's (dense.hpp, top_k.hpp), 128 to 255 users'.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codec_of.hpp"
#include "dense.hpp"
#include "top_k.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class C>
std::unique_ptr<codec> make_codec_of(const codec_options& options) {
  if constexpr (requires { C::from(options); }) {
    return std::make_unique<codec_of<C>>(C::from(options), options.limits);
  } else {
    return std::make_unique<codec_of<C>>(C{}, options.limits);
  }
}

template <class... Cs>
constexpr bool distinct_compressors() {
  const std::string_view labels[] = {Cs::label...};
  const u8 ids[] = {u8(Cs::wire_id)...};
  for (std::size_t a = 0; a < sizeof...(Cs); ++a)
    for (std::size_t b = a + 1; b < sizeof...(Cs); ++b)
      if (labels[a] == labels[b] || ids[a] == ids[b]) return false;
  return true;
}

}  // namespace detail

/// A list of compressors in the compressor's seat.
template <class... Cs>
struct compressors {
  static_assert(sizeof...(Cs) > 0, "a list of compressors has one at least");
  static_assert((check_compressor<Cs>::value && ...));
  static_assert(detail::distinct_compressors<Cs...>(), "two compressors of a list have one label or one wire id");
  using seat = compressor_seat;

  /// What configuration gets when it names none.
  static constexpr std::string_view first() {
    const std::string_view labels[] = {Cs::label...};
    return labels[0];
  }

  static constexpr bool has(std::string_view label) { return ((Cs::label == label) || ...); }

  /// "a, b, c", for messages and --help.
  static std::string names() {
    std::string all;
    ((all += all.empty() ? "" : ", ", all += Cs::label), ...);
    return all;
  }

  /// The codec of that label. Errors: errc::config naming the known ones, or what is wrong in the options.
  static std::unique_ptr<codec> make(std::string_view label, const codec_options& options = {}) {
    std::unique_ptr<codec> made;
    ((Cs::label == label ? void(made = detail::make_codec_of<Cs>(options)) : void()), ...);
    if (made == nullptr) fail(errc::config, "compressor \"", label, "\" is unknown: choose one of ", names());
    return made;
  }
};

using built_in_compressors = compressors<ada_top_k<>, uniform_top_k, int8, half_precision, no_compression>;

/// A built-in compressor by name.
inline std::unique_ptr<codec> make_codec(std::string_view label, const codec_options& options = {}) {
  return built_in_compressors::make(label, options);
}

namespace detail {
template <class T>
struct as_compressors {
  using type = compressors<T>;
};
template <class... Cs>
struct as_compressors<compressors<Cs...>> {
  using type = compressors<Cs...>;
};
}  // namespace detail

/// What sits in the compressor's seat as a list: a list itself, or one compressor.
template <class T>
using compressor_list = typename detail::as_compressors<T>::type;

}  // namespace fusionllm::inline v0
