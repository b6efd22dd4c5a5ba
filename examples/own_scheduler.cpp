// SPDX-License-Identifier: Apache-2.0
// A scheduler of one's own: the first peer has both ends of the model, which share the embedding, and the others have
// equally many operators of the middle. It sits in the scheduler's seat beside the library's; --scheduler chooses.
// ctest: simulate --topology @CMAKE_CURRENT_SOURCE_DIR@/topologies/demo.json --micro_batches 8 --compressor ada_top_k
// ctest: local --peers 3 --data @DATA@/shakespeare.txt --steps 3 --batch 4 --time 32 --validation_batches 2
#include <fusionllm/fusionllm.hpp>

#include "gpt.hpp"

struct ends_together {
  using seat = fl::scheduler_seat;
  static constexpr std::string_view name = "ends_together";

  fl::plan operator()(const fl::planning_problem& problem) const {
    const fl::step_profile profile(problem);
    const int operators = int(profile.order().size());
    // Positions in the order of operators where the middle begins, is cut, and ends; only allowed cuts count.
    const auto allowed = [&](int position) {
      while (position > 0 && !profile.legal_cut(position)) --position;
      return position;
    };
    const int peers = problem.peers(), first = allowed(operators / 8), last = allowed(operators - operators / 8);
    std::vector<fl::peer_team> teams{{0}};
    std::vector<int> begin{0};
    for (int peer = 1; peer < peers; ++peer) {
      const int cut = allowed(first + (last - first) * (peer - 1) / (peers - 1));
      if (cut <= begin.back()) continue;  // fewer operators than peers
      begin.push_back(cut);
      teams.push_back({peer});
    }
    begin.push_back(teams.size() > 1 ? last : operators);
    // What follows the last cut goes to the first stage again. A plan that cannot run ends with its reason.
    fl::plan plan = fl::chain_plan(profile, teams, begin);
    plan.predicted_step = fl::predict_step(profile, plan);
    return plan;
  }
};
static_assert(fl::scheduler<ends_together>);

using trainer = fl::trainer<byte_gpt, fl::schedulers<ends_together, fl::op_fence, fl::best_single>>;

int main(int argc, char** argv) { return fl::run<trainer>(argc, argv); }
