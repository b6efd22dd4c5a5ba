// SPDX-License-Identifier: Apache-2.0
// Element-wise operators and fused chains in blocks that stay in the first-level cache. The library's own operators run
// in vector loops, whether alone or in a chain; a user's run link by link through their scalar function.
#pragma once

#include "../../ops/add.hpp"
#include "../../ops/dropout.hpp"
#include "../../ops/gelu.hpp"
#include "../../ops/multiply.hpp"
#include "../../ops/relu.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class Link, class Op>
inline constexpr bool link_is = false;
template <scalar_function<float> Fn, bool Binary, bool Random, class Op>
inline constexpr bool link_is<chain_link_of<float, Fn, Binary, Random>, Op> = Fn == &scalar_of<Op, float>;

inline constexpr int cpu_block = 512;

/// One link on a block of n elements from `begin` on.
template <class Link>
struct cpu_link : chain_step<float, Link> {
  using chain_step<float, Link>::args, chain_step<float, Link>::key, chain_step<float, Link>::side,
      chain_step<float, Link>::d_side, chain_step<float, Link>::d_side_partial;

  static constexpr bool backward_reads_x = !link_is<Link, add_op> && !link_is<Link, dropout_op>;

  /// x becomes the link's value. Without a side (backward does not read it) what x becomes does not matter.
  void forward(const loop_table& loops, float* x, i64 begin, int n) const {
    if constexpr (link_is<Link, add_op>) side ? loops.add(x, side + begin, x, n) : void();
    else if constexpr (link_is<Link, multiply_op>) side ? loops.multiply(x, side + begin, x, n) : void();
    else if constexpr (link_is<Link, gelu_op>) loops.gelu(x, x, n);
    else if constexpr (link_is<Link, relu_op>) loops.relu(x, x, n);
    else if constexpr (link_is<Link, dropout_op>) drop(loops, x, begin, n);
    else each(loops, scalar_part::value, x, x, x, begin, n);
  }
  /// d becomes the cotangent of the link's first input x; that of the second is stored where it is wanted.
  void backward(const loop_table& loops, const float* x, float* d, i64 begin, int n) const {
    if constexpr (Link::binary)
      if (d_side) second(loops, x, d, begin, n);
    if constexpr (link_is<Link, add_op>) return;
    else if constexpr (link_is<Link, multiply_op>) loops.multiply(d, side + begin, d, n);
    else if constexpr (link_is<Link, gelu_op>) loops.gelu_backward(x, d, d, n);
    else if constexpr (link_is<Link, relu_op>) loops.relu_backward(x, d, d, n);
    else if constexpr (link_is<Link, dropout_op>) drop(loops, d, begin, n);
    else each(loops, scalar_part::d_first, x, d, d, begin, n);
  }

 private:
  void second(const loop_table& loops, const float* x, const float* d, i64 begin, int n) const {
    float own[cpu_block];
    const float* value = own;
    if constexpr (link_is<Link, add_op>) value = d;
    else if constexpr (link_is<Link, multiply_op>) loops.multiply(d, x, own, n);
    else each(loops, scalar_part::d_second, x, d, own, begin, n);
    if (d_side_partial) loops.add(d_side_partial + begin, value, d_side + begin, n);
    else std::memcpy(d_side + begin, value, std::size_t(n) * sizeof(float));
  }
  void drop(const loop_table& loops, float* x, i64 begin, int n) const {
    if (!args.training) return;
    u32 words[cpu_block];
    loops.random_words(key, u64(begin), words, n);
    loops.dropout(x, words, x, n, float(args.attr.x), float(1 / (1 - args.attr.x)));
  }
  void each(const loop_table& loops, scalar_part part, const float* x, const float* d, float* out, i64 begin, int n) const {
    u32 words[cpu_block];
    scalar_args a = args;
    if (Link::random && a.training) loops.random_words(key, u64(begin), words, n);
    for (int i = 0; i < n; ++i) {
      if (Link::random && a.training) a.random = words[i];
      out[i] = Link::at(part, x[i], Link::binary && side ? side[begin + i] : 0.0f, d[i], a);
    }
  }
};

}  // namespace detail

template <class... Links>
struct chain_kernel<cpu, Links...> {
  static constexpr bool adds_partial = true;

  static void forward(cpu_context& c, const kernel_args& a) { forward(c, a, std::index_sequence_for<Links...>{}); }
  static void backward_input(cpu_context& c, const kernel_args& a) { backward(c, a, std::index_sequence_for<Links...>{}); }

 private:
  static constexpr std::size_t links = sizeof...(Links);
  static constexpr i64 block = detail::cpu_block;
  using steps = std::tuple<detail::cpu_link<Links>...>;

  // The last link whose backward reads its first input; inputs after it need not be computed again.
  static constexpr std::size_t last_read() {
    constexpr bool reads[] = {detail::cpu_link<Links>::backward_reads_x...};
    for (std::size_t k = links; k-- > 0;)
      if (reads[k]) return k;
    return 0;
  }

  template <class F>
  static void blocks(cpu_context& c, i64 n, F&& f) {
    c.team.split(n, 2 * block, [&](i64 from, i64 to) {
      for (i64 begin = from; begin < to; begin += block) f(begin, int(to - begin < block ? to - begin : block));
    });
  }

  template <std::size_t... K>
  static void forward(cpu_context& c, const kernel_args& a, std::index_sequence<K...>) {
    steps s;
    (std::get<K>(s).bind(a, K), ...);
    const float* in = a.in[0].as<const float>();
    float* out = a.out.as<float>();
    blocks(c, a.out.count(), [&](i64 begin, int n) {
      float x[block];  // out may be an input: it is written when all are read
      std::memcpy(x, in + begin, std::size_t(n) * sizeof(float));
      (std::get<K>(s).forward(c.loops, x, begin, n), ...);
      std::memcpy(out + begin, x, std::size_t(n) * sizeof(float));
    });
  }

  template <std::size_t... K>
  static void backward(cpu_context& c, const kernel_args& a, std::index_sequence<K...>) {
    steps s;
    (std::get<K>(s).bind(a, K), ...);
    const float *in = a.in[0].as<const float>(), *d_out = a.d_out.as<const float>(), *partial = a.d_partial[0].as<const float>();
    float* d_in = a.d_in[0].as<float>();
    blocks(c, a.d_out.count(), [&](i64 begin, int n) {
      const std::size_t bytes = std::size_t(n) * sizeof(float);
      float x[links][block], d[block];  // x[k]: first input of link k
      if (in) std::memcpy(x[0], in + begin, bytes);
      else std::memset(x[0], 0, bytes);  // an operator whose backward reads no input
      (next<K>(s, c.loops, x, begin, n), ...);
      std::memcpy(d, d_out + begin, bytes);
      (std::get<links - 1 - K>(s).backward(c.loops, x[links - 1 - K], d, begin, n), ...);
      if (d_in && partial) c.loops.add(partial + begin, d, d_in + begin, n);
      else if (d_in) std::memcpy(d_in + begin, d, bytes);
    });
  }
  template <std::size_t K>
  static void next(const steps& s, const loop_table& loops, float (&x)[links][block], i64 begin, int n) {
    if constexpr (K + 1 <= last_read()) {
      std::memcpy(x[K + 1], x[K], std::size_t(n) * sizeof(float));
      std::get<K>(s).forward(loops, x[K + 1], begin, n);
    }
  }
};

}  // namespace fusionllm::inline v0
