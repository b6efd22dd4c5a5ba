// SPDX-License-Identifier: Apache-2.0
// The laws of schedulers, for those of the library and for yours. No test framework is needed: what comes back is one
// line a broken law.
//   for (const auto& broken : fusionllm::laws::of_scheduler<my_scheduler>()) std::puts(broken.c_str());
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <fusionllm/graph/graph.hpp>
#include <fusionllm/ops/ops.hpp>
#include <fusionllm/schedule/scheduler.hpp>
#include <fusionllm/simulate/lower_bound.hpp>
#include <fusionllm/simulate/replay.hpp>

namespace fusionllm::inline v0::laws {

namespace detail {

/// Models of all kinds: one operator, a chain, a branch that does not reach the loss, residuals with a tied parameter.
struct one_operator {
  static constexpr auto define(auto& g) {
    return mean_squared_error(input<real, batch, 8>(g, "x"), input<real, batch, 8>(g, "y"));
  }
};
struct forty_two_layers {
  static constexpr auto define(auto& g) {
    auto y = input<real, batch, 8>(g, "y");
    return mean_squared_error(input<real, batch, 8>(g, "x") | repeat<42>(linear<8>), y);
  }
};
struct two_islands {
  static constexpr auto define(auto& g) {
    auto y = input<real, batch, 8>(g, "y");
    output("aside", input<real, batch, 8>(g, "z") | linear<8>.named("c") | linear<8>.named("d"));
    return mean_squared_error(input<real, batch, 8>(g, "x") | linear<8>.named("a"), y);
  }
};
struct tied_gpt {
  static constexpr auto define(auto& g) {
    auto wte = parameter<64, 16>(g, "wte");
    auto x = embedding(input<i32, batch, time>(g, "tokens"), wte) |
             repeat<3>(residual(layer_norm | causal_attention<2>) | residual(layer_norm | linear<64> | gelu | linear<16>));
    return cross_entropy(project(x, wte), input<i32, batch, time>(g, "targets"));
  }
};

inline cluster joined(int peers, bool alike) {
  cluster c = uniform_cluster(peers, {"", 0, 10'000'000, u64(1) << 30, 0, 1000}, {millisecond, 1'000'000});
  for (int i = 0; i < peers && !alike; ++i) {
    c.peers[std::size_t(i)].flops_per_second *= 1u << (i % 3);
    for (int k = 0; k < peers; ++k)
      if (i % 2 == k % 2) c.between(i, k) = {10'000, 100'000'000};
  }
  return c;
}

template <class S>
class scheduler_run {
 public:
  std::vector<std::string> all() {
    with_model<one_operator>("one operator");
    with_model<forty_two_layers>("42 layers");
    with_model<two_islands>("two parts");
    with_model<tied_gpt>("a tied GPT");
    return std::move(broken_);
  }

 private:
  void law(bool holds, const char* what) {
    if (!holds) broken_.push_back(std::string(what) + " (" + where_ + ")");
  }

  template <class Model>
  void with_model(const char* model) {
    const graph_view g = graph_of<Model>();
    for (int peers : {1, 3, 7, 16})
      for (bool alike : {true, false})
        with_machines(model, g, joined(peers, alike), true, std::to_string(peers) + (alike ? " equal peers" : " peers"));
    cluster closed = joined(4, true), apart = joined(4, true), small = joined(3, true);
    closed.between(1, 2) = {};
    for (path& p : apart.paths) p = {};
    for (machine& m : small.peers) m.memory_bytes = 64;
    with_machines(model, g, closed, false, "a link without bandwidth");
    with_machines(model, g, apart, false, "no link has bandwidth");
    with_machines(model, g, small, false, "64 bytes of memory");
  }

  void with_machines(const char* model, const graph_view& g, const cluster& c, bool possible, const std::string& machines) {
    const cost_model costs(c);
    for (schedule_kind schedule : {schedule_kind::gpipe, schedule_kind::one_f_one_b})
      for (int micro_batches : {1, 6}) {
        planning_problem p;
        p.graph = g;
        p.costs = &costs;
        p.micro_batch = {2, 4};
        p.micro_batches = micro_batches;
        p.groups = micro_batches / 3 > 0 ? micro_batches / 3 : 1;
        p.schedule = schedule;
        where_ = std::string(model) + ", " + machines + ", " + std::to_string(micro_batches) + " micro-batches, " + name_of(schedule);
        with_problem(p, possible);
      }
  }

  void with_problem(const planning_problem& p, bool possible) {
    try {
      const plan x = S{}(p);
      try {
        check(x, p.graph, p.peers());
      } catch (const error& e) {
        return law(false, e.what());
      }
      const plan y = S{}(p);
      law(x.stage_of == y.stage_of && x.peers == y.peers, "the same problem gets another plan the second time");
      law(x.micro_batches == p.micro_batches && x.groups == p.groups && x.schedule == p.schedule,
          "a plan cuts the batch as the problem says");
      const nanoseconds step = replay(p, x).step;
      law(step >= lower_bound(p, x).step(), "a step is shorter than its lower bound");
      law(x.predicted_step == 0 || x.predicted_step == step, "a plan's predicted step is not what the replay says");
    } catch (const error& e) {
      law(e.code() == errc::plan && e.what()[0] != 0, "a failure is errc::plan with a reason");
      law(!possible, e.what());
    }
  }

  std::vector<std::string> broken_;
  std::string where_;
};

}  // namespace detail

/// What scheduler S breaks; nothing if it keeps the laws: every operator placed once, on peers that can run it and talk;
/// the same plan every time; a reason when there is none.
template <scheduler S>
std::vector<std::string> of_scheduler() {
  return detail::scheduler_run<S>().all();
}

}  // namespace fusionllm::inline v0::laws
