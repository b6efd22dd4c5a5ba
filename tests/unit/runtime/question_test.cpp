// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/question.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

TEST_CASE("questions beyond the bounds are no questions") {
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  std::vector<std::byte> m(fl::question::bytes);
  const auto told = [&](fl::question q, fl::inference_kind kind, int node) {
    q.encode(m.data());
    return error_of([&] { fl::question::decode(m, g, {node, kind, {2, 8}, 1}); });
  };
  const auto whole = fl::inference_kind::whole, decoding = fl::inference_kind::decoding;
  CHECK(told({{3, 8}, 0, 1, false}, whole, logits).says(fl::errc::protocol, "3 rows"));
  CHECK(told({{2, 9}, 0, 1, false}, whole, logits).says(fl::errc::protocol, "9 times"));
  CHECK(told({{-1, 8}, 0, 1, false}, whole, logits).says(fl::errc::protocol, "rows"));
  CHECK(told({{2, 4}, 1, 1, false}, whole, logits).says(fl::errc::protocol, "after 1"));
  CHECK(told({{2, 4}, 5, 1, false}, decoding, logits).says(fl::errc::protocol, "after 5"));
  CHECK(told({{2, 4}, -1, 1, false}, decoding, logits).says(fl::errc::protocol, "after"));
  CHECK(told({{2, 4}, 0, 1, true}, whole, g.loss).says(fl::errc::protocol, "last time"));
  fl::question{{2, 4}, 4, 0.5, true}.encode(m.data());
  const fl::question q = fl::question::decode(m, g, {logits, decoding, {2, 8}, 1});
  CHECK((q.run.batch == 2 && q.run.time == 4 && q.past == 4 && q.loss_scale == 0.5 && q.last_time));
  CHECK(q.answer_dims(g, logits) == g.nodes[std::size_t(logits)].out.resolve({2, 1}));
}

TEST_CASE("a stage gets the inputs that it reads, each at a multiple of 8 bytes") {
  const auto g = fl::graph_of<case_gpt>();
  const fl::program f = fl::forward_program(g, chain_plan(g.size(), {{0}, {1}}), g.loss);
  CHECK(fl::inputs_of(g, f, 0) == std::vector<int>{0});
  CHECK(fl::inputs_of(g, f, 1) == std::vector<int>{1});
  const std::vector<int> both{0, 1};
  CHECK(fl::question_bytes(g, both, {1, 3}, fl::dtype::f32) == fl::question::bytes + 2 * 16);
}

TEST_CASE("replicas take turns; a decoder stays where its state is") {
  const fl::plan p = chain_plan(10, {{0, 3}, {1}});
  const fl::forward_output whole{9, fl::inference_kind::whole, {2, 8}, 2}, decoder{9, fl::inference_kind::decoding, {2, 8}, 1};
  CHECK(fl::peer_for(p, whole, 0, 4) == 0);
  CHECK(fl::peer_for(p, whole, 0, 5) == 3);
  CHECK(fl::peer_for(p, whole, 1, 5) == 1);
  CHECK(fl::peer_for(p, decoder, 0, 5) == 0);
}
