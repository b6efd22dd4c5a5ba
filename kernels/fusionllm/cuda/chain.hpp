// SPDX-License-Identifier: Apache-2.0
// The body of a fused element-wise chain: each member takes four neighbours at a time through all links in registers.
// Four, because a block of Philox holds the random words of four elements. Bits are those of the operators alone; of
// activations that are 16 bits wide, what is between two links is not rounded.
#pragma once

#include <tuple>
#include <utility>

#include <fusionllm/device/chain.hpp>

#include "team.hpp"

namespace fusionllm::inline v0 {

/// What a chain works on; passed to a GPU kernel by value.
template <class T, class... Links>
struct chain_arguments {
  std::tuple<detail::chain_step<T, Links>...> links;
  const T* in = nullptr;         ///< null: no link's backward reads it
  T* out = nullptr;              ///< forward
  const T* d_out = nullptr;      ///< backward
  T* d_in = nullptr;             ///< backward; null: not wanted
  const T* d_partial = nullptr;  ///< backward; added to d_in
  i64 count = 0;
  bool aligned = true;           ///< all pointers are `quad_aligned`

  explicit chain_arguments(const kernel_args& a)
      : in(a.in[0].as<const T>()), out(a.out.as<T>()), d_out(a.d_out.as<const T>()), d_in(a.d_in[0].as<T>()),
        d_partial(a.d_partial[0].as<const T>()), count(d_out ? a.d_out.count() : a.out.count()) {
    bind(a, std::index_sequence_for<Links...>{});
    for (const T* p : {in, static_cast<const T*>(out), d_out, static_cast<const T*>(d_in), d_partial})
      aligned = aligned && quad_aligned(p);
  }
  FL_HD i64 quads() const { return (count + 3) / 4; }

 private:
  template <std::size_t... K>
  void bind(const kernel_args& a, std::index_sequence<K...>) {
    (std::get<K>(links).bind(a, K), ...);
    const auto see = [this](const auto& s) {
      aligned = aligned && quad_aligned(s.side) && quad_aligned(s.d_side) && quad_aligned(s.d_side_partial);
    };
    (see(std::get<K>(links)), ...);
  }
};

/// T: of tensors. Links compute in `scalar_real<T>`.
template <class T, class... Links>
struct chain_body {
  using arguments = chain_arguments<T, Links...>;
  using real = scalar_real<T>;

  template <class Team>
  FL_HD static void forward(const Team& team, const arguments& a) {
    each_quad(team, a, [&]<bool Whole>(i64 q, std::bool_constant<Whole>) { forward_quad<Whole>(a, q, all{}); });
  }
  template <class Team>
  FL_HD static void backward(const Team& team, const arguments& a) {
    each_quad(team, a, [&]<bool Whole>(i64 q, std::bool_constant<Whole>) { backward_quad<Whole>(a, q, all{}); });
  }

 private:
  static constexpr std::size_t links = sizeof...(Links);
  using all = std::index_sequence_for<Links...>;
  template <std::size_t K>
  using link = std::tuple_element_t<K, std::tuple<Links...>>;

  template <class Team, class F>
  FL_HD static void each_quad(const Team& team, const arguments& a, F&& f) {
    const i64 step = i64(team.count) * team.size, whole = a.aligned ? a.count / 4 : 0;
    i64 q = i64(team.index) * team.size + team.rank;
    for (; q < whole; q += step) f(q, std::true_type{});
    for (; q < a.quads(); q += step) f(q, std::false_type{});
  }

  /// One link's view of a quad: its second input and its random words.
  template <bool Whole, std::size_t K>
  struct operands {
    const detail::chain_step<T, link<K>>& step;
    quad<real> side{};
    philox_block words{};

    FL_HD operands(const arguments& a, i64 q) : step(std::get<K>(a.links)) {
      if constexpr (link<K>::binary)
        if (step.side) side = load<Whole>(step.side, q, a.count);
      if constexpr (link<K>::random)
        if (step.args.training) words = philox(step.key, u64(q));
    }
    FL_HD real at(scalar_part part, int j, real x, real d) const {
      scalar_args s = step.args;
      s.random = words.v[j];
      return link<K>::at(part, x, side.v[j], d, s);
    }
  };

  template <bool Whole, std::size_t K>
  FL_HD static quad<real> value(const arguments& a, i64 q, const quad<real>& x) {
    const operands<Whole, K> o(a, q);
    quad<real> y;
    for (int j = 0; j < 4; ++j) y.v[j] = o.at(scalar_part::value, j, x.v[j], real(0));
    return y;
  }

  template <bool Whole>
  FL_HD static quad<real> load(const T* from, i64 q, i64 count) {
    return quad_of<real>(load_quad<Whole>(from, 4 * q, count));
  }
  template <bool Whole>
  FL_HD static void store(const arguments& a, i64 q, quad<real> d, T* to, const T* partial) {
    if (partial) {
      const quad<real> p = load<Whole>(partial, q, a.count);
      for (int j = 0; j < 4; ++j) d.v[j] = p.v[j] + d.v[j];
    }
    store_quad<Whole>(quad_of<T>(d), to, 4 * q, a.count);
  }

  /// d becomes the cotangent of link K's first input x; that of its second is stored where it is wanted.
  template <bool Whole, std::size_t K>
  FL_HD static void cotangent(const arguments& a, i64 q, const quad<real>& x, quad<real>& d) {
    const operands<Whole, K> o(a, q);
    if constexpr (link<K>::binary)
      if (o.step.d_side) {
        quad<real> d_side;
        for (int j = 0; j < 4; ++j) d_side.v[j] = o.at(scalar_part::d_second, j, x.v[j], d.v[j]);
        store<Whole>(a, q, d_side, o.step.d_side, o.step.d_side_partial);
      }
    for (int j = 0; j < 4; ++j) d.v[j] = o.at(scalar_part::d_first, j, x.v[j], d.v[j]);
  }

  template <bool Whole, std::size_t... K>
  FL_HD static void forward_quad(const arguments& a, i64 q, std::index_sequence<K...>) {
    quad<real> x = load<Whole>(a.in, q, a.count);
    ((x = value<Whole, K>(a, q, x)), ...);
    store<Whole>(a, q, x, a.out, nullptr);
  }

  template <bool Whole, std::size_t... K>
  FL_HD static void backward_quad(const arguments& a, i64 q, std::index_sequence<K...>) {
    quad<real> x[links] = {};  // x[k]: first input of link k
    if (a.in) x[0] = load<Whole>(a.in, q, a.count);
    ((K + 1 < links ? void(x[(K + 1) % links] = value<Whole, K>(a, q, x[K])) : void()), ...);
    quad<real> d = load<Whole>(a.d_out, q, a.count);
    (cotangent<Whole, links - 1 - K>(a, q, x[links - 1 - K], d), ...);
    if (a.d_in) store<Whole>(a, q, d, a.d_in, a.d_partial);
  }
};

}  // namespace fusionllm::inline v0
