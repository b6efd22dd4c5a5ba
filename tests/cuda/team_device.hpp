// SPDX-License-Identifier: Apache-2.0
// Devices whose operators are the GPU's own kernels, run on the host: by teams of one, or by teams of threads that wait
// for each other as the members of a block do.
#pragma once

#include <fusionllm/cuda/chain.hpp>
#include <fusionllm/cuda/operators.hpp>

#include "barrier_team.hpp"

namespace seam {

/// Launches on blocks of Size threads, at most two.
template <fl::u32 Size>
struct thread_launch {
  using context = fl::device_context;
  static constexpr fl::u32 most = 2;

  template <class Body>
  static void blocks(context&, fl::i64 wanted, const Body& body, const char*) {
    if (wanted <= 0) return;
    const auto shared = std::make_unique<fl::shared_memory_of<Body, barrier_team<Size>>>();
    barrier_launch<Size>::run(fl::blocks_for(wanted, 1, most), [&](auto team) { fl::run_body(body, team, *shared); });
  }
  template <class Body>
  static void rows(context& c, fl::i64 rows, fl::i64, const Body& body, const char* what) {
    blocks(c, rows, body, what);
  }
  template <class Body>
  static void items(context& c, fl::i64 items, const Body& body, const char* what) {
    blocks(c, (items + Size - 1) / Size, body, what);
  }
};

/// T: of activations.
template <class T, class Launch>
struct team_device {
  using real = T;
  static constexpr std::string_view name = "team";
  using context = fl::device_context;
  template <class Op>
  static constexpr const fl::kernel_table* kernels() {
    if constexpr (Op::elementwise || fl::has_team_kernel<Op, T, Launch>) return &fl::kernel_table_of<Op, team_device>;
    else return nullptr;
  }
};
using alone = team_device<float, fl::host_launch>;
using alone_bf16 = team_device<fl::bfloat16, fl::host_launch>;
template <fl::u32 Size>
using together = team_device<float, thread_launch<Size>>;

}  // namespace seam

namespace fusionllm::inline v0 {
template <class Op, class T, class Launch>
  requires has_team_kernel<Op, T, Launch>
struct kernel<Op, seam::team_device<T, Launch>> : team_kernel<Op, T, Launch> {};

template <class T, class Launch, class... Links>
struct chain_kernel<seam::team_device<T, Launch>, Links...> {
  using body = chain_body<T, Links...>;
  static constexpr bool adds_partial = true;

  static void forward(device_context& c, const kernel_args& a) {
    const typename body::arguments arguments(a);
    Launch::items(c, arguments.quads(), forward_body{arguments}, "");
  }
  static void backward_input(device_context& c, const kernel_args& a) {
    const typename body::arguments arguments(a);
    Launch::items(c, arguments.quads(), backward_body{arguments}, "");
  }

 private:
  struct forward_body {
    typename body::arguments a;
    template <class Team>
    void operator()(const Team& team) const {
      body::forward(team, a);
    }
  };
  struct backward_body {
    typename body::arguments a;
    template <class Team>
    void operator()(const Team& team) const {
      body::backward(team, a);
    }
  };
};

template <class Op, class T, class Launch>
  requires Op::elementwise
struct kernel<Op, seam::team_device<T, Launch>>
    : chain_kernel<seam::team_device<T, Launch>,
                   chain_link_of<scalar_real<T>, &detail::scalar_of<Op, scalar_real<T>>, true, Op::random>> {};
}  // namespace fusionllm::inline v0
