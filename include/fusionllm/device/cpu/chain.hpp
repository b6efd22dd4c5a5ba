// SPDX-License-Identifier: Apache-2.0
// Element-wise operators and fused chains in blocks that stay in the first-level cache. The library's own operators run
// in vector loops, whether alone or in a chain; a user's run link by link through their scalar function.
#pragma once

#include "../../ops/add.hpp"
#include "../../ops/dropout.hpp"
#include "../../ops/gelu.hpp"
#include "../../ops/multiply.hpp"
#include "../../ops/relu.hpp"
#include "../../ops/scale.hpp"
#include "../../ops/silu.hpp"
#include "../../ops/subtract.hpp"
#include "device.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class Link, class Op>
inline constexpr bool link_is =
    std::is_same_v<Link, chain_link_of<float, &scalar_of<Op, float>, Link::binary, Link::random>>;

inline constexpr int cpu_block = 512;

/// One link on a block of n elements from `begin` on.
template <class Link>
struct cpu_link : chain_step<float, Link> {
  using chain_step<float, Link>::args, chain_step<float, Link>::key, chain_step<float, Link>::side,
      chain_step<float, Link>::d_side, chain_step<float, Link>::d_side_partial;

  static constexpr bool backward_reads_x = !link_is<Link, add_op> && !link_is<Link, subtract_op>
                                           && !link_is<Link, scale_op> && !link_is<Link, dropout_op>;

  /// out = the link's value of x; out may be x. Without a side (backward does not read it) the value does not matter.
  void forward(const loop_table& loops, const float* x, float* out, i64 begin, int n) const {
    if constexpr (link_is<Link, add_op>)
      side ? loops.add(x, side + begin, out, n) : void();
    else if constexpr (link_is<Link, multiply_op>)
      side ? loops.multiply(x, side + begin, out, n) : void();
    else if constexpr (link_is<Link, gelu_op>)
      loops.gelu(x, out, n);
    else if constexpr (link_is<Link, silu_op>)
      loops.silu(x, out, n);
    else if constexpr (link_is<Link, scale_op>)
      times(float(args.attr.x), x, out, n);
    else if constexpr (link_is<Link, relu_op>)
      loops.relu(x, out, n);
    else if constexpr (link_is<Link, dropout_op>)
      drop(loops, x, out, begin, n);
    else
      each(loops, scalar_part::value, x, x, out, begin, n);
  }
  /// Where the cotangent of the link's first input x is: in `out`, which may be d, or still in d, if it is the same.
  /// That of the second input is stored where it is wanted.
  const float* backward(const loop_table& loops, const float* x, const float* d, float* out, i64 begin, int n) const {
    if constexpr (Link::binary)
      if (d_side) second(loops, x, d, begin, n);
    if constexpr (link_is<Link, add_op> || link_is<Link, subtract_op>)
      return d;
    else if constexpr (link_is<Link, scale_op>)
      times(float(args.attr.x), d, out, n);
    else if constexpr (link_is<Link, multiply_op>)
      loops.multiply(d, side + begin, out, n);
    else if constexpr (link_is<Link, gelu_op>)
      loops.gelu_backward(x, d, out, n);
    else if constexpr (link_is<Link, silu_op>)
      loops.silu_backward(x, d, out, n);
    else if constexpr (link_is<Link, relu_op>)
      loops.relu_backward(x, d, out, n);
    else if constexpr (link_is<Link, dropout_op>)
      drop(loops, d, out, begin, n);
    else
      each(loops, scalar_part::d_first, x, d, out, begin, n);
    return out;
  }

 private:
  void second(const loop_table& loops, const float* x, const float* d, i64 begin, int n) const {
    float own[cpu_block];
    const float* value = own;
    if constexpr (link_is<Link, add_op>)
      value = d;
    else if constexpr (link_is<Link, subtract_op>)
      times(-1.0f, d, own, n);
    else if constexpr (link_is<Link, multiply_op>)
      loops.multiply(d, x, own, n);
    else
      each(loops, scalar_part::d_second, x, d, own, begin, n);
    if (d_side_partial)
      loops.add(d_side_partial + begin, value, d_side + begin, n);
    else
      std::memcpy(d_side + begin, value, std::size_t(n) * sizeof(float));
  }
  static void times(float factor, const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = x[i] * factor;
  }
  void drop(const loop_table& loops, const float* x, float* out, i64 begin, int n) const {
    if (!args.training) {
      if (out != x) std::memcpy(out, x, std::size_t(n) * sizeof(float));
      return;
    }
    u32 words[cpu_block];
    loops.random_words(key, u64(begin), words, n);
    loops.dropout(x, words, out, n, float(args.attr.x), float(1 / (1 - args.attr.x)));
  }
  void each(const loop_table& loops, scalar_part part, const float* x, const float* d, float* out, i64 begin,
            int n) const {
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
  static void backward_input(cpu_context& c, const kernel_args& a) {
    backward(c, a, std::index_sequence_for<Links...>{});
  }

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
      float between[block];
      (std::get<K>(s).forward(c.loops, K == 0 ? in + begin : between, K + 1 == links ? out + begin : between, begin, n),
       ...);
    });
  }

  template <std::size_t... K>
  static void backward(cpu_context& c, const kernel_args& a, std::index_sequence<K...>) {
    steps s;
    (std::get<K>(s).bind(a, K), ...);
    const float *in = a.in[0].as<const float>(), *d_out = a.d_out.as<const float>();
    const float* partial = a.d_partial[0].as<const float>();
    float* d_in = a.d_in[0].as<float>();
    blocks(c, a.d_out.count(), [&](i64 begin, int n) {
      float values[links][block], between[block];
      // x[k]: first input of link k. An operator whose backward reads none gets anything.
      const float* x[links] = {in ? in + begin : d_out + begin};
      (next<K>(s, c.loops, x, values, begin, n), ...);
      const float* d = d_out + begin;
      float* whole = d_in && !partial ? d_in + begin : between;
      ((d = std::get<links - 1 - K>(s).backward(c.loops, x[links - 1 - K], d, K + 1 == links ? whole : between, begin,
                                                n)),
       ...);
      if (d_in && partial)
        c.loops.add(partial + begin, d, d_in + begin, n);
      else if (d_in && d != d_in + begin)
        std::memcpy(d_in + begin, d, std::size_t(n) * sizeof(float));
    });
  }
  template <std::size_t K>
  static void next(const steps& s, const loop_table& loops, const float* (&x)[links], float (&values)[links][block],
                   i64 begin, int n) {
    if constexpr (K + 1 <= last_read()) {
      std::get<K>(s).forward(loops, x[K], values[K], begin, n);
      x[K + 1] = values[K];
    }
  }
};

}  // namespace fusionllm::inline v0
