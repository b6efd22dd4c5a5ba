// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/runtime/forward_asker.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {
struct asked {
  int to;
  fl::frame_header header;
  std::size_t bytes;
};
}  // namespace

TEST_CASE("answers are taken in the order of the questions, from whom was asked, in the size that was asked for") {
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  fl::forward_asker a(g, chain_plan(g.size(), {{0}, {1, 2}}), {{logits, fl::inference_kind::whole, {2, 8}, 2}}, fl::dtype::f32);
  token_batch b(2, 8);
  b.fill(0, case_gpt::vocabulary);
  std::vector<const void*> inputs(g.nodes.size());
  inputs[0] = b.tokens.data();
  std::vector<asked> sent;
  const auto send = [&](int to, const fl::frame_header& h, std::vector<std::byte> m) { sent.push_back({to, h, m.size()}); };
  a.ask(0, {{2, 8}, 0, 1, false}, inputs, send);
  a.ask(0, {{1, 8}, 0, 1, true}, inputs, send);
  CHECK(a.under_way(0) == 2);
  CHECK(error_of([&] { a.ask(0, {{1, 8}, 0, 1, true}, inputs, send); }).says(fl::errc::internal, "the 2 that may be under way"));
  REQUIRE(sent.size() == 4);
  CHECK((sent[0].to == 0 && sent[1].to == 1 && sent[2].to == 0 && sent[3].to == 2));
  CHECK((sent[0].bytes == fl::question::bytes + 64 && sent[1].bytes == fl::question::bytes && sent[3].header.step == 1));

  fl::frame_header h;
  h.kind = fl::answer_kind;
  h.step = 1;
  h.total_length = case_gpt::vocabulary * 4;
  CHECK(error_of([&] { a.place(1, h); }).says(fl::errc::protocol, "was not asked"));
  --h.total_length;
  CHECK(error_of([&] { a.place(2, h); }).says(fl::errc::protocol, "243 bytes, expected 244"));
  ++h.total_length;
  h.step = 2;
  CHECK(error_of([&] { a.place(2, h); }).says(fl::errc::protocol, "was not asked"));
  h.step = 1;
  const auto second = a.place(2, h);
  CHECK(error_of([&] { a.place(2, h); }).says(fl::errc::protocol, "twice"));
  second[0] = std::byte{9};
  a.deliver(2, h, second);
  CHECK(error_of([&] { a.deliver(2, h, second); }).says(fl::errc::protocol, "was not asked"));
  CHECK(!a.answered(0));
  CHECK(a.owing() == 1);
  h.step = 0;
  h.total_length = 2 * 8 * case_gpt::vocabulary * 4;
  a.deliver(1, h, std::vector<std::byte>(h.total_length));
  std::vector<std::byte> memory;
  REQUIRE(a.answered(0));
  CHECK(a.take(0, memory).dims == g.nodes[std::size_t(logits)].out.resolve({2, 8}));
  const fl::tensor_ref r = a.take(0, memory);
  CHECK(r.dims == g.nodes[std::size_t(logits)].out.resolve({1, 1}));
  CHECK(*r.as<std::byte>() == std::byte{9});
  CHECK((a.under_way(0) == 0 && a.owing() == -1));
}
