// SPDX-License-Identifier: Apache-2.0
#include "scheduler_laws.hpp"

#include "catch.hpp"
#include "fusionllm/schedule/schedulers.hpp"

namespace fl = fusionllm;

namespace {

template <class S>
void holds() {
  for (const auto& line : fl::laws::of_scheduler<S>()) FAIL_CHECK(line);
}

/// Keeps the laws: everything on the last peer that can hold it.
struct last_peer {
  using seat = fl::scheduler_seat;
  static constexpr std::string_view name = "last_peer";
  fl::plan operator()(const fl::planning_problem& problem) const {
    const fl::step_profile f(problem);
    fl::plan p = fl::chain_plan(f, {{problem.peers() - 1}}, {0, int(f.order().size())});
    fl::predict_step(f, p);
    return p;
  }
};

/// Breaks laws on purpose: another plan each time, without regard to memory.
struct restless {
  using seat = fl::scheduler_seat;
  static constexpr std::string_view name = "restless";
  fl::plan operator()(const fl::planning_problem& problem) const {
    static int turn = 0;
    const fl::step_profile f(problem);
    return fl::chain_plan(f, {{++turn % problem.peers()}}, {0, int(f.order().size())});
  }
};

/// Forgets an operator.
struct forgetful : last_peer {
  static constexpr std::string_view name = "forgetful";
  fl::plan operator()(const fl::planning_problem& problem) const {
    fl::plan p = last_peer::operator()(problem);
    p.stage_of.back() = 7;
    return p;
  }
};

bool found(const std::vector<std::string>& broken, const std::string& text) {
  for (const auto& line : broken)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("schedulers of the library keep the laws") {
  holds<fl::op_fence>();
  holds<fl::equal_number>();
  holds<fl::equal_compute>();
  holds<fl::best_single>();
}

TEST_CASE("a user's scheduler keeps the laws, and those that break them are found") {
  holds<last_peer>();
  CHECK(found(fl::laws::of_scheduler<restless>(), "another plan the second time"));
  CHECK(found(fl::laws::of_scheduler<restless>(), "a failure is") == false);
  CHECK(found(fl::laws::of_scheduler<forgetful>(), "is on stage 7"));
}
