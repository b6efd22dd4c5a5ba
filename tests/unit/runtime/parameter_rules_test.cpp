// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/parameter_rules.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;

TEST_CASE("rules follow the graph, then the patterns; running statistics are never frozen") {
  fl::parameter_info p[3];
  const char* names[] = {"a.weight", "a.bias", "bn.running_mean"};
  for (int i = 0; i < 3; ++i) p[i].path.put(names[i]);
  p[1].decays = false;
  p[2].momentum = 0.1;
  fl::graph_view g;
  g.params = p;
  auto r = fl::parameter_rules(g, {}, {});
  CHECK(r[0].decays);
  CHECK(!r[1].decays);
  CHECK(r[2].updates);
  r = fl::parameter_rules(g, {"*.weight"}, {"a.b*"});
  CHECK(!r[0].decays);
  CHECK(r[0].updates);
  CHECK(!r[1].updates);
  CHECK(r[2].updates);
  CHECK(error_of([&] { fl::parameter_rules(g, {"b.*"}, {}); }).says(fl::errc::config, "no_decay", "'b.*'"));
  CHECK(error_of([&] { fl::parameter_rules(g, {}, {"bn.*"}); }).says(fl::errc::config, "freeze", "'bn.*'"));
  CHECK(error_of([&] { fl::parameter_rules(g, {}, {"*"}); }).says(fl::errc::config, "nothing is left to train"));
}
