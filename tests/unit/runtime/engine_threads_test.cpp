// SPDX-License-Identifier: Apache-2.0
// Engines whose devices are threads, on real time: the same bits, and nothing for a thread sanitizer to find.
#include <fusionllm/runtime/device_queue.hpp>

#include <fusionllm/transport/asio_reactor.hpp>

#include "catch.hpp"
#include "engines.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("devices on threads of their own give the bits of devices that compute at once") {
  using device = fl::reference<float>;
  const int n = fl::graph_of<case_gpt>().size();
  group_options o;
  o.optimizer = lively_optimizer();
  for (const char* codec : {"no_compression", "ada_top_k"})
    for (const auto& peers : {std::vector<std::vector<int>>{{0}, {1}, {2}}, {{0, 1}, {2}}}) {
      o.codec = codec;
      engine_group<case_gpt, device> expected(chain_plan(n, peers), o);
      engine_group<case_gpt, device, fl::asio_reactor, fl::worker_queue> threads(chain_plan(n, peers), o);
      expected.train(6);
      threads.race(6);
      CHECK(threads.weights() == expected.weights());
      CHECK(threads.report().verdict.loss == expected.losses.back());
    }
}

TEST_CASE("a group may end in the middle of a step: engines wait for their devices") {
  const int n = fl::graph_of<case_gpt>().size();
  token_batch b(10, case_gpt::time);
  b.fill(0, case_gpt::vocabulary);
  for (int events = 0; events < 60; events += 3) {
    const auto d = b.data(0, fl::graph_of<case_gpt>());
    engine_group<case_gpt, fl::reference<float>, fl::asio_reactor, fl::worker_queue> g(chain_plan(n, {{0}, {1}}), {});
    for (int i = 0; i < 2; ++i) g.engine(i).start(d);
    for (int k = 0; k < events; ++k) g.loop().run_one(g.loop().now() + fl::millisecond);
  }
}
