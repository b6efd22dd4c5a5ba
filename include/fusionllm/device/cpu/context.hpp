// SPDX-License-Identifier: Apache-2.0
// What the CPU keeps for one peer: a team of threads, the loops of an instruction set, and a scratch buffer a thread.
// oneDNN always runs on one thread, inside a member of the team, on pieces whose sizes depend on shapes alone: results
// have the same bits with every number of threads, and no OpenMP thread is ever started.
#pragma once

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/team.hpp"
#include "../kernel.hpp"
#include "loops.hpp"

namespace fusionllm::inline v0 {

struct cpu_context : device_context {
  /// Throws errc::resource if this machine lacks the instruction set.
  explicit cpu_context(int threads = 1, vector_isa set = best_vector_isa())
      : team(threads), isa(set), loops(checked(set)), scratch_(std::size_t(team.size()) + 1) {}

  thread_team team;
  const vector_isa isa;
  const loop_table& loops;

  /// Room for n floats of the calling member `rank`, 64-byte aligned. It grows to the largest request and stays.
  float* scratch(int rank, i64 n) {
    buffer& b = scratch_[std::size_t(rank)];
    if (b.size < n) {
      b.memory.reset();
      b.memory.reset(static_cast<float*>(::operator new(std::size_t(n) * sizeof(float), std::align_val_t(64))));
      b.size = n;
    }
    return b.memory.get();
  }

  /// The same for all members together; ask before the team runs.
  float* shared_scratch(i64 n) { return scratch(team.size(), n); }

  /// Calls f(rank, task) for each task in [0, tasks), contiguous shares a member. What f throws is thrown here.
  template <class F>
  void each(i64 tasks, F&& f) {
    if (tasks <= 0) return;
    if (tasks == 1) return void(f(0, i64(0)));
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr thrown;
    team.run([&](int rank, int size) {
      try {
        for (i64 t = tasks * rank / size, end = tasks * (rank + 1) / size; t < end; ++t) f(rank, t);
      } catch (...) {
        if (!failed.test_and_set()) thrown = std::current_exception();
      }
    });
    if (thrown) std::rethrow_exception(thrown);
  }
  /// Calls f(begin, end) on pieces of [0, n) of `piece` elements (but the last), whatever the number of threads.
  template <class F>
  void pieces(i64 n, i64 piece, F&& f) {
    each((n + piece - 1) / piece, [&](int, i64 t) { f(t * piece, (t + 1) * piece < n ? (t + 1) * piece : n); });
  }

  /// Calls f(row) for each of `rows`, shared out over the team.
  template <class F>
  void each_row(i64 rows, F&& f) {
    team.split(rows, 8, [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) f(r);
    });
  }

  /// Calls add(from, to, sums) for parts of n columns, with zeroed sums (to - from) to be filled in, and adds those to
  /// out (n).
  template <class F>
  void add_by_columns(i64 n, float* out, F&& add) {
    if (!out) return;
    constexpr i64 part = 64;
    pieces(n, part, [&](i64 from, i64 to) {
      double sums[part] = {};
      add(from, to, sums);
      for (i64 i = from; i < to; ++i) out[i] = float(double(out[i]) + sums[i - from]);
    });
  }

 private:
  static const loop_table& checked(vector_isa set) {
    if (!has(set)) fail(errc::resource, "this machine has no ", name_of(set), " instructions: choose another set");
    return loops_for(set);
  }
  struct aligned_delete {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  struct buffer {
    std::unique_ptr<float, aligned_delete> memory;
    i64 size = 0;
  };
  std::vector<buffer> scratch_;
};

}  // namespace fusionllm::inline v0
