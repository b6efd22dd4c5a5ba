// SPDX-License-Identifier: Apache-2.0
// What a plan has peers send each other in a step, no more and no less, is what each of them lets in.
#include <fusionllm/runtime/expected_messages.hpp>

#include <set>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using device = fl::reference<float>;

/// One peer's expectations, with everything that they refer to.
struct expectations {
  expectations(const fl::plan& p, int self)
      : share(fl::graph_of<case_gpt>(), p, self, fl::dtype::f32, {}),
        store(share.g, share.p, self, share.real, 7),
        compute(share.g, share.p, share.prog, self, {fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, share.real},
                {3, case_gpt::time}, 7, store, [](const fl::edge&) { return fl::make_codec(fl::no_compression::label, {}); }, 4),
        expected(share, compute, {3, case_gpt::time}, 0) {}
  device::context context;
  fl::peer_share share;
  fl::parameter_store store;
  fl::stage_compute compute;
  fl::expected_messages expected;
};

using place = std::tuple<int, fl::u16, u32, u32, u32>;  // to, kind, from, edge, part
place place_of(int to, const fl::frame_header& h) { return {to, fl::u16(h.kind), h.source, h.edge, h.micro_batch}; }

fl::frame_header example(fl::frame_kind kind, u32 source, u32 edge, u32 part, u64 length) {
  fl::frame_header h;
  h.kind = kind;
  h.source = source;
  h.edge = edge;
  h.micro_batch = part;
  h.total_length = length;
  if (kind == fl::frame_kind::activation || kind == fl::frame_kind::cotangent) h.codec = fl::u16(fl::no_compression::wire_id);
  return h;
}

}  // namespace

TEST_CASE("what a run sends is let in, at this step and the next, and nothing else that looks like it") {
  const int n = fl::graph_of<case_gpt>().size();
  for (const auto& peers : {std::vector<std::vector<int>>{{0}, {1}}, {{1, 0}, {2}}, {{0}, {3, 1}, {2}}, {{0, 1}}}) {
    const fl::plan p = chain_plan(n, peers);
    engine_group<case_gpt, device> g(p, {});
    std::map<place, fl::frame_header> sent;
    g.meddle = [&](int to, fl::frame_header& h, std::vector<std::byte>& bytes) {
      sent[place_of(to, h)] = h;
      sent[place_of(to, h)].total_length = bytes.size();
      return true;
    };
    g.train(1);
    REQUIRE(!sent.empty());
    const auto params = u32(g.graph().params.size()), edges = u32(fl::compile(g.graph(), p).edges.size());
    std::size_t let_in = 0;
    for (int to = 0; to < g.size(); ++to) {
      const expectations x(p, to);
      const auto good = [&](fl::frame_header h, u64 at_step) { return error_of([&] { x.expected.check(h, at_step); }).code == fl::errc::ok; };
      using kind = fl::frame_kind;
      for (kind k : {kind::activation, kind::cotangent, kind::gradient, kind::parameter, fl::summary_kind, fl::verdict_kind, kind::bulk})
        for (u32 from = 0; from < u32(g.size()) + 1; ++from)
          for (u32 e = 0; e <= (std::max)(edges, params); ++e)
            for (u32 part = 0; part < 6; ++part) {
              const auto found = sent.find(place_of(to, example(k, from, e, part, 0)));
              u64 length = found != sent.end() ? found->second.total_length : k == fl::verdict_kind ? fl::step_verdict::bytes : 8;
              if (found == sent.end() && (k == kind::gradient || k == kind::parameter) && e < params) length = x.share.bytes_of(int(e));
              const auto h = example(k, from, e, part, length);
              if (good(h, 0) != (found != sent.end())) FAIL("to " << to << ": kind " << int(k) << " of " << from << ", edge " << e << ", part " << part);
              if (found == sent.end()) continue;
              ++let_in;
              auto next = h;
              next.step = 1;
              CHECK(good(next, 0));
              CHECK(good(next, 1));
              CHECK(!good(h, 1));
              next.step = 2;
              CHECK(!good(next, 0));
              auto other = h;
              other.epoch = 1;
              CHECK(!good(other, 0));
            }
    }
    CHECK(let_in == sent.size());
  }
}

TEST_CASE("a message's length is bounded by what it can hold") {
  const fl::plan p = chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {1}});
  const expectations first(p, 0), second(p, 1);
  const auto longest = [](const expectations& x, fl::frame_header h) {
    u64 good = 0;
    for (u64 bit = u64(1) << 40; bit > 0; bit >>= 1) {
      h.total_length = good | bit;
      if (error_of([&] { x.expected.check(h, 0); }).code == fl::errc::ok) good |= bit;
    }
    return good;
  };
  using kind = fl::frame_kind;
  for (int e = 0; e < int(first.share.prog.edges.size()); ++e) {
    const bool forward = first.share.prog.edges[std::size_t(e)].kind == fl::edge_kind::activation;
    const expectations& to = forward ? second : first;
    CHECK(longest(to, example(forward ? kind::activation : kind::cotangent, forward ? 0 : 1, u32(e), 0, 0)) ==
          u64(to.compute.max_frame_bytes(e, {3, case_gpt::time})));
  }
  CHECK(longest(second, example(fl::summary_kind, 0, 0, 0, 0)) == fl::step_summary::bytes(first.share.g.params.size() + 4) + fl::fault::bytes);
  const auto good = [](const expectations& x, const fl::frame_header& h) { return error_of([&] { x.expected.check(h, 0); }).code == fl::errc::ok; };
  const u64 weights = first.share.bytes_of(0);  // of the tied embedding
  CHECK(good(second, example(kind::parameter, 0, 0, 0, weights)));
  CHECK(!good(second, example(kind::parameter, 0, 0, 0, 0)));
  CHECK(!good(second, example(kind::parameter, 0, 0, 0, weights - 4)));
  CHECK(good(first, example(kind::gradient, 1, 0, 3, weights)));
  CHECK(good(first, example(kind::gradient, 1, 0, 3, 0)));  // what is not finite is not sent
  CHECK(!good(first, example(kind::gradient, 1, 0, 3, weights + 4)));
  for (u64 length = 0; length < 80; ++length)
    CHECK(good(first, example(fl::verdict_kind, 1, 0, 0, length)) == (length == fl::step_verdict::bytes || length == fl::step_verdict::skipped_bytes));
}

TEST_CASE("a tensor of another codec is refused, and names are the run's") {
  const fl::plan p = chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {1}});
  const expectations x(p, 1);
  auto h = example(fl::frame_kind::activation, 0, 0, 0, 8);
  h.codec = fl::u16(h.codec + 1);
  CHECK(error_of([&] { x.expected.check(h, 0); }).says(fl::errc::protocol, "peer 0 sends edge 0 by codec"));
  CHECK(error_of([&] { x.expected.came_twice(h); }).says(fl::errc::protocol, "peer 0", "twice"));
  CHECK(x.expected.title(77) == "peer 77");
}
