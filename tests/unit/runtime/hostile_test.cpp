// SPDX-License-Identifier: Apache-2.0
// What an engine does with messages that no honest peer sends: a protocol error that names the sender. That nothing is
// allocated for them is in allocation_test.cpp.
#include <fusionllm/runtime/engine.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using group = engine_group<case_gpt, fl::reference<float>>;

fl::plan two_and_one() { return chain_plan(fl::graph_of<case_gpt>().size(), {{0, 1}, {2}}); }

fl::frame_header header(fl::frame_kind kind, u32 source, u32 edge, u32 part, u64 step, u64 length) {
  fl::frame_header h;
  h.kind = kind;
  h.source = source;
  h.edge = edge;
  h.micro_batch = part;
  h.step = step;
  if (kind == fl::frame_kind::activation || kind == fl::frame_kind::cotangent) h.codec = fl::u16(fl::no_compression::wire_id);
  h.total_length = length;
  return h;
}

struct dice {
  u64 seed, n = 0;
  u32 next() { return fl::random_word({seed, 5, 0, 0}, n++); }
};

}  // namespace

TEST_CASE("messages of wrong edge, step, size, parameter or sender name the sender") {
  group g(two_and_one(), {});
  const u64 weights = 61 * 16 * 4;
  const auto refused = [&](int to, const fl::frame_header& h, const char* part) {
    const auto why = error_of([&] { g.engine(to).place(h); });
    INFO(why.text);
    CHECK(why.says(fl::errc::protocol, "peer " + std::to_string(h.source), part));
    std::vector<std::byte> bytes(std::size_t((std::min)(h.total_length, u64(1) << 20)));
    CHECK(error_of([&] { g.engine(to).deliver(h, bytes); }).code == fl::errc::protocol);
  };
  using kind = fl::frame_kind;
  refused(2, header(kind::activation, 0, 1000, 0, 0, 8), "1000");
  refused(2, header(kind::activation, 0, 0, 4, 0, 8), "micro-batch 4");
  refused(2, header(kind::activation, 0, 0, 0, 2, 8), "step 2");
  refused(2, header(kind::activation, 0, 0, 0, 0, 1 << 30), "at most");
  refused(2, header(kind::activation, 1, 0, 0, 0, 8), "edge 0");   // micro-batch 0 is peer 0's
  refused(2, header(kind::cotangent, 0, 0, 0, 0, 8), "edge 0");    // an activation's edge
  refused(0, header(kind::activation, 1, 0, 0, 0, 8), "edge 0");   // leads elsewhere
  refused(0, header(kind::gradient, 2, 0, 1, 0, weights), "a gradient");            // total of use 0: that is at peer 1
  refused(0, header(kind::gradient, 1, 0, 3, 0, weights), "a gradient");            // total of use 1: that is at peer 2
  refused(0, header(kind::gradient, 1, 0, 0, 0, weights), "a gradient");            // nobody is before the first replica
  refused(1, header(kind::gradient, 0, 0, 2, 0, weights), "a gradient");            // a use of another stage
  refused(1, header(kind::gradient, 0, 0, 0xFFFFFFFF, 0, weights), "a gradient");
  refused(1, header(kind::gradient, 0, 0, 0, 0, weights - 4), "expected");
  refused(1, header(kind::gradient, 0, 99, 0, 0, weights), "parameter 99");
  refused(0, header(kind::parameter, 1, 0, 0, 0, weights), "a parameter");          // the primary owner gets none
  refused(2, header(kind::parameter, 1, 0, 0, 0, weights), "a parameter");          // nor gives anyone else
  refused(2, header(kind::parameter, 0, 1, 0, 0, 12 * 16 * 4), "a parameter");      // peer 2 has no copy of it
  refused(2, header(kind::parameter, 0, 0, 1, 0, weights), "a parameter");
  refused(0, header(fl::summary_kind, 2, 0, 0, 0, 8), "a summary");                 // peer 2 leads
  refused(2, header(fl::summary_kind, 9, 0, 0, 0, 8), "a summary");
  refused(2, header(fl::summary_kind, 0, 0, 0, 0, 1 << 20), "at most");
  refused(0, header(fl::verdict_kind, 1, 0, 0, 0, 32), "a verdict");
  refused(0, header(fl::verdict_kind, 2, 0, 0, 0, 31), "expected 32");
  refused(0, header(kind{77}, 2, 0, 0, 0, 8), "kind 77");
  fl::frame_header other_plan = header(kind::activation, 0, 0, 0, 0, 8);
  other_plan.epoch = 3;
  refused(2, other_plan, "plan 3");
  fl::frame_header other_codec = header(kind::activation, 0, 0, 0, 0, 8);
  other_codec.codec = 999;
  refused(2, other_codec, "codec 999");
}

TEST_CASE("a message that comes twice is refused, before, after and while the first one arrives") {
  group g(two_and_one(), {});
  fl::engine& e = g.engine(2);
  fl::frame_header h = header(fl::frame_kind::parameter, 0, 0, 0, 0, 61 * 16 * 4);
  const auto memory = e.place(h);
  CHECK(error_of([&] { e.place(h); }).says(fl::errc::protocol, "twice"));
  std::vector<std::byte> elsewhere(memory.size());
  CHECK(error_of([&] { e.deliver(h, elsewhere); }).says(fl::errc::protocol, "twice"));
  CHECK(error_of([&] { e.deliver(h, std::span(elsewhere).first(8)); }).says(fl::errc::protocol, "announced"));
  e.deliver(h, memory);
  CHECK(error_of([&] { e.deliver(h, memory); }).says(fl::errc::protocol, "twice"));
  CHECK(error_of([&] { e.place(h); }).says(fl::errc::protocol, "twice"));
}

TEST_CASE("a message that comes again after it was used is found at the end of its step") {
  group g(two_and_one(), {});
  int again = 0;
  g.meddle = [&](int to, fl::frame_header& h, std::vector<std::byte>& bytes) {
    if (to == 2 && h.kind == fl::frame_kind::activation && h.micro_batch == 0 && again++ == 0)
      g.loop().after(60 * fl::microsecond, [&g, h, bytes]() mutable {
        h.total_length = bytes.size();
        g.engine(2).deliver(h, bytes);
      });
    return true;
  };
  const auto why = error_of([&] { g.train(1); });
  INFO(why.text);
  CHECK(why.says(fl::errc::protocol, "peer 0", "twice"));
}

TEST_CASE("damaged payloads end in a protocol error that says which tensor, never in a crash") {
  for (const std::string codec : {"no_compression", "ada_top_k", "int8", "half_precision"})
    for (u64 seed = 0; seed < 25; ++seed) {
      group_options o;
      o.codec = codec;
      group g(two_and_one(), o);
      dice d{seed};
      const u32 victim = d.next() % 24;
      u32 seen = 0;
      g.meddle = [&](int, fl::frame_header& h, std::vector<std::byte>& bytes) {
        if (seen++ != victim || bytes.empty()) return true;
        if (d.next() % 3 == 0 && h.kind != fl::frame_kind::parameter) bytes.resize(d.next() % bytes.size());
        else
          for (int k = 0; k < 4; ++k) bytes[d.next() % std::min<std::size_t>(bytes.size(), 64)] ^= std::byte(1 + d.next() % 255);
        return true;
      };
      const auto why = error_of([&] { g.train(1); });
      INFO(codec << ' ' << seed << ": " << why.text);
      const bool known = why.code == fl::errc::ok || why.code == fl::errc::protocol || why.code == fl::errc::numeric;
      CHECK(known);
    }
}

TEST_CASE("who waits for whom is said for every phase of a step") {
  using kind = fl::frame_kind;
  const auto stuck = [&](kind k, int to, const char* expected) {
    group g(two_and_one(), {});
    g.meddle = [&](int receiver, fl::frame_header& h, std::vector<std::byte>&) { return h.kind != k || receiver != to; };
    try {
      g.train(1);
      FAIL("it did not wait");
    } catch (const std::runtime_error&) {
    }
    INFO(g.engine(to).waiting_for());
    CHECK(g.engine(to).waiting_for().find(expected) != std::string::npos);
    CHECK(g.engine(to).waiting_for().find("in step 0") != std::string::npos);
  };
  stuck(kind::activation, 2, "peer 0 for the activation of node");
  stuck(kind::cotangent, 1, "peer 2 for the cotangent of node");
  stuck(kind::gradient, 1, "peer 0 for gradients of its replica");
  stuck(kind::gradient, 0, "peer 1 for the gradient of wte.weight");
  stuck(fl::summary_kind, 2, "peer 0 for its summary, peer 1 for its summary");
  stuck(fl::verdict_kind, 0, "peer 2, the leader, for its verdict");
  stuck(kind::parameter, 1, "peer 0 for new values of");
}
