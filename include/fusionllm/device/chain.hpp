// SPDX-License-Identifier: Apache-2.0
// Element-wise operators and fused chains of them on devices whose memory the host reads: one pass over memory, in
// blocks that stay in registers and first-level cache. A chain computes, link by link, exactly what its operators would
// alone, and backward recomputes the links' inputs instead of reading them.
#pragma once

#include <tuple>
#include <utility>

#include "../graph/static_graph.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// A device whose tensors are plain host memory: `static constexpr bool host = true`. If its context has a member
/// `thread_team team`, element-wise work is split over it; the bits do not depend on how.
template <class Device>
concept host_device = requires {
  requires Device::host;
};

/// What element-wise operators compute in where tensors hold Real: those of 16 bits are widened.
template <class Real>
using scalar_real = std::conditional_t<(sizeof(Real) < sizeof(float)), float, Real>;

/// One link of a chain as a type. Binary: it may have a second input.
template <class T, scalar_function<T> Fn, bool Binary, bool Random>
struct chain_link_of {
  static constexpr bool binary = Binary, random = Random;
  FL_HD static T at(scalar_part part, T x, T y, T d, const scalar_args& a) { return Fn(part, x, y, d, a); }
};

namespace detail {

inline constexpr int chain_block = 64;

template <class T>
struct element_block {
  T v[chain_block];

  // A short last block is filled up with its last element, so that no link sees a value that is not there.
  void load(const T* from, i64 begin, int count) {
    if (count == chain_block) {
      for (int i = 0; i < chain_block; ++i) v[i] = from[begin + i];
    } else {
      for (int i = 0; i < chain_block; ++i) v[i] = from[begin + (i < count ? i : count - 1)];
    }
  }
  void clear() {
    for (T& x : v) x = T(0);
  }
  void store(T* to, const T* partial, i64 begin, int count) const {
    if (partial)
      for (int i = 0; i < count; ++i) to[begin + i] = partial[begin + i] + v[i];
    else
      for (int i = 0; i < count; ++i) to[begin + i] = v[i];
  }
};

/// Link k of a node; an operator that is not fused is a chain of one.
constexpr chain_link link_at(const node& n, std::size_t k) {
  if (n.links) return n.chain[k];
  return {n.op, n.attr, n.traced_id, n.in[1] >= 0 ? 1 : -1};
}

/// Calls f(begin, end) on parts of [0, n), in parallel where the context has a team.
template <class Context, class F>
void split_elements(Context& c, i64 n, i64 grain, F&& f) {
  if constexpr (requires { c.team.split(n, grain, f); })
    c.team.split(n, grain, f);
  else
    f(i64(0), n);
}

template <class T, class Link>
struct chain_step {
  scalar_args args;
  random_key key;
  const T* side = nullptr;  ///< the second input
  T* d_side = nullptr;      ///< where its cotangent goes
  const T* d_side_partial = nullptr;

  void bind(const kernel_args& a, std::size_t k) {
    const chain_link link = link_at(*a.op, k);
    args.attr = link.attr;
    args.training = a.mode == pass::training;
    key = a.key;
    key.node = u32(link.traced_id);
    if (Link::binary && link.side >= 0) {
      const std::size_t s = std::size_t(link.side);
      side = a.in[s].template as<const T>();
      d_side = a.d_in[s].template as<T>();
      d_side_partial = a.d_partial[s].template as<const T>();
    }
  }
  void draw(element_block<u32>& words, i64 begin) const {
    if constexpr (Link::random) {
      if (args.training)
        random_words(words.v, chain_block, key, u64(begin));
      else
        words.clear();
    }
  }
  void load_side(element_block<T>& y, i64 begin, int count) const {
    if constexpr (Link::binary) {
      if (side)
        y.load(side, begin, count);
      else
        y.clear();
    }
  }
  // r becomes one part of the link. What does not change within a block is a constant in the loop: it vectorizes.
  template <scalar_part Part>
  void apply(element_block<T>& r, const element_block<T>& x, const element_block<T>& y, const element_block<T>& d,
             const element_block<u32>& words) const {
    if (Link::random && args.training)
      apply<Part, true>(r, x, y, d, words);
    else
      apply<Part, false>(r, x, y, d, words);
  }
  template <scalar_part Part, bool Draws>
  void apply(element_block<T>& r, const element_block<T>& x, const element_block<T>& y, const element_block<T>& d,
             const element_block<u32>& words) const {
    scalar_args a = args;
    if constexpr (Link::random) a.training = Draws;
    for (int i = 0; i < chain_block; ++i) {
      if constexpr (Draws) a.random = words.v[i];
      r.v[i] = Link::at(Part, x.v[i], Link::binary ? y.v[i] : T(0), Part == scalar_part::value ? T(0) : d.v[i], a);
    }
  }
  /// x becomes the link's value.
  void forward(element_block<T>& x, i64 begin, int count) const {
    element_block<T> y;
    element_block<u32> words;
    load_side(y, begin, count);
    draw(words, begin);
    apply<scalar_part::value>(x, x, y, x, words);
  }
  /// d becomes the cotangent of the link's first input x; that of the second is stored where it is wanted.
  void backward(const element_block<T>& x, element_block<T>& d, i64 begin, int count) const {
    element_block<T> y;
    element_block<u32> words;
    load_side(y, begin, count);
    draw(words, begin);
    if constexpr (Link::binary) {
      if (d_side) {
        element_block<T> second;
        apply<scalar_part::d_second>(second, x, y, d, words);
        second.store(d_side, d_side_partial, begin, count);
      }
    }
    apply<scalar_part::d_first>(d, x, y, d, words);
  }
};

}  // namespace detail

/// Kernels of a fused chain on Device; a device that is no host specializes it. Links are `chain_link_of`.
template <class Device, class... Links>
struct chain_kernel {
  static_assert(host_device<Device>, "a device that is not host memory specializes fusionllm::chain_kernel");
  using T = typename Device::real;
  using context = typename Device::context;
  static constexpr bool adds_partial = true;

  /// out = the chain of in[0], all (n) elements.
  static void forward(context& c, const kernel_args& a) { forward(c, a, std::index_sequence_for<Links...>{}); }
  /// d_in of every input that is wanted.
  static void backward_input(context& c, const kernel_args& a) { backward(c, a, std::index_sequence_for<Links...>{}); }

 private:
  static constexpr std::size_t links = sizeof...(Links);
  using steps = std::tuple<detail::chain_step<T, Links>...>;
  using block = detail::element_block<T>;

  template <std::size_t... K>
  static void forward(context& c, const kernel_args& a, std::index_sequence<K...>) {
    steps s;
    (std::get<K>(s).bind(a, K), ...);
    const T* in = a.in[0].template as<const T>();
    T* out = a.out.template as<T>();
    detail::split_elements(c, a.out.count(), grain, [&](i64 from, i64 to) {
      for (i64 begin = from; begin < to; begin += detail::chain_block) {
        const int count = block_at(begin, to);
        block x;
        x.load(in, begin, count);
        (std::get<K>(s).forward(x, begin, count), ...);
        x.store(out, nullptr, begin, count);
      }
    });
  }

  template <std::size_t... K>
  static void backward(context& c, const kernel_args& a, std::index_sequence<K...>) {
    steps s;
    (std::get<K>(s).bind(a, K), ...);
    const T* in = a.in[0].template as<const T>();
    const T* d_out = a.d_out.template as<const T>();
    T* d_in = a.d_in[0].template as<T>();
    const T* partial = a.d_partial[0].template as<const T>();
    detail::split_elements(c, a.d_out.count(), grain, [&](i64 from, i64 to) {
      for (i64 begin = from; begin < to; begin += detail::chain_block) {
        const int count = block_at(begin, to);
        block x[links];  // x[k]: first input of link k
        if (in)
          x[0].load(in, begin, count);
        else
          x[0].clear();  // an operator whose backward reads no input
        ((K + 1 < links ? (x[(K + 1) % links] = x[K], std::get<K>(s).forward(x[(K + 1) % links], begin, count))
                        : void()),
         ...);
        block d;
        d.load(d_out, begin, count);
        (std::get<links - 1 - K>(s).backward(x[links - 1 - K], d, begin, count), ...);
        if (d_in) d.store(d_in, partial, begin, count);
      }
    });
  }

  static constexpr i64 grain = 16 * detail::chain_block;  // a part of a team begins at a whole block
  static int block_at(i64 begin, i64 end) {
    return end - begin < detail::chain_block ? int(end - begin) : detail::chain_block;
  }
};

/// An element-wise operator on a host device is a chain of one link.
template <class Op, class Device>
  requires(Op::elementwise&& host_device<Device>)
struct kernel<Op, Device>
    : chain_kernel<Device, chain_link_of<typename Device::real, &detail::scalar_of<Op, typename Device::real>, true,
                                         Op::random>> {};

}  // namespace fusionllm::inline v0
