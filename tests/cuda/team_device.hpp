// SPDX-License-Identifier: Apache-2.0
// Devices whose operators are the GPU's own kernels, run on the host: by teams of one, or by teams of threads that wait
// for each other as the members of a block do.
#pragma once

#include <fusionllm/cuda/operators.hpp>
#include <fusionllm/device/chain.hpp>

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

template <class Launch>
struct team_device {
  using real = float;
  static constexpr std::string_view name = "team";
  static constexpr bool host = true;
  using context = fl::device_context;
  template <class Op>
  static constexpr const fl::kernel_table* kernels() {
    if constexpr (fl::has_team_kernel<Op, float, Launch>) return &fl::kernel_table_of<Op, team_device>;
    else return nullptr;
  }
};
using alone = team_device<fl::host_launch>;
template <fl::u32 Size>
using together = team_device<thread_launch<Size>>;

}  // namespace seam

namespace fusionllm::inline v0 {
template <class Op, class Launch>
  requires has_team_kernel<Op, float, Launch>
struct kernel<Op, seam::team_device<Launch>> : team_kernel<Op, float, Launch> {};
}  // namespace fusionllm::inline v0
