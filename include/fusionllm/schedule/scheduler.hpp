// SPDX-License-Identifier: Apache-2.0
// The scheduler's seat: who decides which peer runs which operators. A list of schedulers is a scheduler seat too;
// configuration chooses from it by name.
//
//   struct my_scheduler {
//     using seat = scheduler_seat;
//     static constexpr std::string_view name = "mine";
//     plan operator()(const planning_problem&) const;   // throws errc::plan with a reason when there is no plan
//   };
//   using mine_too = schedulers<op_fence, my_scheduler>;
#pragma once

#include <concepts>
#include <string_view>

#include "../core/seat.hpp"
#include "problem.hpp"

namespace fusionllm::inline v0 {

template <class S>
concept has_scheduler_seat = std::same_as<typename S::seat, scheduler_seat>;
template <class S>
concept has_scheduler_name = requires {
  { S::name } -> std::convertible_to<std::string_view>;
};
template <class S>
concept makes_plans = requires(const S& s, const planning_problem& p) {
  { s(p) } -> std::same_as<plan>;
};

template <class S>
concept scheduler = has_scheduler_seat<S> && has_scheduler_name<S> && makes_plans<S> && std::default_initializable<S>;

/// One assertion a requirement, so that the compiler names the missing one.
template <class S>
struct check_scheduler {
  static_assert(has_scheduler_seat<S>, "a scheduler says: using seat = fusionllm::scheduler_seat;");
  static_assert(has_scheduler_name<S>, "a scheduler has a static constexpr std::string_view name");
  static_assert(makes_plans<S>, "a scheduler has plan operator()(const planning_problem&) const");
  static_assert(std::default_initializable<S>, "a scheduler can be made without arguments");
  static constexpr bool value = scheduler<S>;
};

/// The schedulers that a program was compiled with; the first is the default.
template <class... S>
struct schedulers {
  using seat = scheduler_seat;
  static_assert(sizeof...(S) > 0, "a list of schedulers has at least one");
  static_assert((check_scheduler<S>::value && ...));

  static std::vector<std::string> names() { return {std::string(S::name)...}; }

  /// The plan of the scheduler of that name, checked; an empty name is the default. Errors: errc::config for a name
  /// that is not in the list; errc::plan when there is no plan, or a scheduler made one that does not fit.
  static plan make(std::string_view name, const planning_problem& p) {
    check(p);
    plan r;
    bool found = false;
    (void)((name.empty() || name == S::name ? (r = S{}(p), r.scheduler = S::name, found = true) : false) || ...);
    if (!found) unknown(name);
    check(r, p.graph, p.peers());
    return r;
  }

 private:
  [[noreturn]] static void unknown(std::string_view name) {
    std::string all;
    for (const std::string& n : names()) all += (all.empty() ? "" : ", ") + n;
    fail(errc::config, "no scheduler is called \"", name, "\", expected one of: ", all);
  }
};

}  // namespace fusionllm::inline v0
