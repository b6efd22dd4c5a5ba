// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/state_parts.hpp>

#include <set>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "virtual_cluster.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("a resumed run sends each peer what it holds, once and in order: copies of weights, all parts to owners") {
  const auto g = fl::graph_of<case_gpt>();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}}, {{1}, {0}}, {{0, 2}, {3}}, {{2}, {0}}}) {
    const fl::plan p = chain_plan(g.size(), peers);
    const auto owners = fl::owners_of(g, p);
    fl::parts_to_send all(owners, 4);
    std::set<std::pair<int, u32>> of_primaries;
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<std::pair<int, u32>> sent;
      while (const fl::state_part x = all.next(u64(rank))) sent.push_back({x.parameter, x.part});
      CHECK(!all.next(u64(rank)));
      CHECK(std::is_sorted(sent.begin(), sent.end()));
      if (p.stage_of_peer(rank) < 0) {
        CHECK(sent.empty());
        continue;
      }
      fl::parameter_store store(g, p, rank, fl::dtype::f32, 1);
      std::size_t held = 0;
      for (const auto& x : store.parameters()) held += x.primary ? fl::state_parts : 1;
      CHECK(sent.size() == held);
      for (auto [parameter, part] : sent) {  // the peer has memory for it
        const auto h = fl::state_message({parameter, part}).header;
        fl::frame_header whole = h;
        whole.total_length = g.params[std::size_t(parameter)].count() * 4;
        CHECK(fl::own_state_memory(&store, g, fl::dtype::f32, whole).size() == whole.total_length);
        if (owners[std::size_t(parameter)].primary == rank) CHECK(of_primaries.insert({parameter, part}).second);
      }
    }
    CHECK(of_primaries.size() == fl::state_parts * g.params.size());
  }
}

TEST_CASE("a part that a peer does not hold, of another size or at another time is refused") {
  const auto g = fl::graph_of<case_gpt>();
  const fl::plan p = chain_plan(g.size(), {{0}, {1}});
  fl::parameter_store first(g, p, 0, fl::dtype::f32, 1), second(g, p, 1, fl::dtype::f32, 1);
  const auto refused = [&](fl::parameter_store* store, int parameter, u32 part, u64 bytes) {
    fl::frame_header h = fl::state_message({parameter, part}).header;
    h.total_length = bytes;
    return error_of([&] { fl::own_state_memory(store, g, fl::dtype::f32, h); }).says(fl::errc::protocol, "the broker sends");
  };
  const u64 tied = g.params[0].count() * 4;
  CHECK(!refused(&first, 0, 2, tied));
  CHECK(!refused(&second, 0, 0, tied));
  CHECK(refused(&second, 0, 1, tied));  // a copy has no optimizer's state
  CHECK(refused(&first, 0, 3, tied));
  CHECK(refused(&first, 0, 0, tied - 4));
  CHECK(refused(&first, int(g.params.size()), 0, tied));
  CHECK(refused(&first, int(g.params.size()) - 1, 0, g.params.back().count() * 4));
  CHECK(refused(nullptr, 0, 0, tied));
}
