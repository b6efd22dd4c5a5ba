// SPDX-License-Identifier: Apache-2.0
// A block of GPU threads played by threads of the host: what a team of one cannot show (who waits for whom, sums over
// members) runs here without a GPU. Under the thread sanitizer it finds a missing wait.
#pragma once

#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include <fusionllm/cuda/team.hpp>

namespace seam {

namespace fl = fusionllm;

template <fl::u32 Size>
class barrier_team {
 public:
  static constexpr fl::u32 size = Size;
  struct block {
    std::barrier<> gate{Size};
    std::array<fl::u64, Size> terms{};
  };
  fl::u32 rank, index, count;
  block* shared;

  void wait() const { shared->gate.arrive_and_wait(); }
  fl::u64 sum_before(fl::u64 v, fl::u64& total) const {
    shared->terms[rank] = v;
    wait();
    fl::u64 before = 0;
    total = 0;
    for (fl::u32 i = 0; i < Size; ++i) {
      if (i == rank) before = total;
      total += shared->terms[i];
    }
    wait();
    return before;
  }
  template <class T>
  T sum(T v) const {
    return over_all(v, [](T a, T b) { return a + b; });
  }
  float largest(float v) const {
    return over_all(v, [](float a, float b) { return b > a ? b : a; });
  }
  bool any(bool v) const {
    return over_all(int(v), [](int a, int b) { return a | b; }) != 0;
  }
  void add(fl::u32* to, fl::u32 v) const { std::atomic_ref<fl::u32>(*to).fetch_add(v); }

 private:
  template <class T, class F>
  T over_all(T v, F&& f) const {
    std::memcpy(&shared->terms[rank], &v, sizeof v);
    wait();
    T all{};
    for (fl::u32 i = 0; i < Size; ++i) {
      T x;
      std::memcpy(&x, &shared->terms[i], sizeof x);
      all = i == 0 ? x : f(all, x);
    }
    wait();
    return all;
  }
};

/// Calls f(team) on each member of `count` teams, one team after another.
struct host_launch {
  static constexpr fl::u32 size = 1;
  template <class F>
  static void run(fl::u32 count, F&& f) {
    for (fl::u32 i = 0; i < count; ++i) f(fl::host_team{i, count});
  }
};
template <fl::u32 Size>
struct barrier_launch {
  static constexpr fl::u32 size = Size;
  template <class F>
  static void run(fl::u32 count, F&& f) {
    for (fl::u32 i = 0; i < count; ++i) {
      typename barrier_team<Size>::block block;
      std::vector<std::thread> members;
      for (fl::u32 rank = 0; rank < Size; ++rank)
        members.emplace_back([&, rank] { f(barrier_team<Size>{rank, i, count, &block}); });
      for (auto& m : members) m.join();
    }
  }
};

}  // namespace seam
