// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/cluster/step_grants.hpp>

#include <vector>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u64;

namespace {

/// Where a run rests whose slowest peer does one step after the other.
std::vector<u64> rests(fl::step_grants g, u64 from, u64 most) {
  std::vector<u64> r;
  g.go_on_from(from);
  for (u64 done = from; r.size() < most; ++done) {
    g.extend(done);
    if (g.rests_at(done)) {
      r.push_back(done);
      if (g.ends_at(done)) break;
      g.go_on_from(done);
      g.extend(done);
    }
    CHECK(g.granted() > done);
    CHECK(g.granted() <= done + fl::step_grants::ahead);
  }
  return r;
}

}  // namespace

TEST_CASE("a run rests at every interval and at its end, wherever it began") {
  CHECK(rests({20, 6}, 0, 9) == std::vector<u64>{6, 12, 18, 20});
  CHECK(rests({20, 6}, 13, 9) == std::vector<u64>{18, 20});
  CHECK(rests({20, 0}, 0, 9) == std::vector<u64>{20});
  CHECK(rests({20, 1}, 17, 9) == std::vector<u64>{18, 19, 20});
  CHECK(rests({20, 20}, 0, 9) == std::vector<u64>{20});
  CHECK(rests({20, 5}, 20, 9) == std::vector<u64>{20});
  CHECK(rests({0, 0}, 0, 9) == std::vector<u64>{0});
}

TEST_CASE("nothing is granted twice, or past a rest") {
  fl::step_grants g(20, 6);
  g.go_on_from(0);
  CHECK(g.extend(0));
  CHECK(g.granted() == 4);
  CHECK(!g.extend(0));
  CHECK(g.extend(3));
  CHECK(g.granted() == 6);
  CHECK(!g.extend(5));
  CHECK(!g.rests_at(5));
  CHECK(g.rests_at(6));
}

TEST_CASE("a run that is stopped rests for the last time after the steps that were granted") {
  fl::step_grants g(20, 0);
  g.go_on_from(0);
  g.extend(2);
  CHECK(g.granted() == 6);
  g.stop();
  CHECK(!g.extend(5));
  CHECK(!g.rests_at(5));
  CHECK(g.rests_at(6));
  CHECK(g.ends_at(6));
}
