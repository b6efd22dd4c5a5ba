// SPDX-License-Identifier: Apache-2.0
// A steady step allocates nothing: engines, codecs, queues and stores keep their memory from step to step. Nor does a
// message that this peer cannot expect.
#include <fusionllm/runtime/stage_compute.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

template <class Device>
void check_steady(const fl::plan& p, group_options o) {
  o.optimizer = lively_optimizer();
  o.same_delays = true;
  o.bounds.batch = (10 + p.micro_batches - 1) / p.micro_batches;
  engine_group<case_gpt, Device> g(p, o);
  token_batch b(10, case_gpt::time);
  fl::step_data d = b.data(0, g.graph());
  for (u64 step = 0; step < 8; ++step) {
    b.fill(step, case_gpt::vocabulary, 3, 6);
    d.step = step;
    const long before = allocations();
    g.step(d);
    const long made = allocations() - before;
    INFO("step " << step << ", " << p.stages() << " stages, " << o.codec);
    if (step >= 3) CHECK(made == 0);
  }
}

// Numbers near every bound that the checks have.
struct dice {
  u64 seed, n = 0;
  u32 next() { return fl::random_word({seed, 5, 0, 0}, n++); }
  u64 number() {
    static constexpr u64 interesting[] = {0, 1, 2, 3, 4, 7, 8, 16, 32, 61, 64, 768, 3904, 4096, 0xFFFF, 0xFFFFFFFF, u64(1) << 40, ~u64(0)};
    return next() % 3 ? interesting[next() % std::size(interesting)] : next();
  }
};

}  // namespace

TEST_CASE("a steady step of one peer allocates nothing") {
  const int n = fl::graph_of<case_gpt>().size();
  check_steady<fl::reference<float>>(chain_plan(n, {{0}}), {});
  check_steady<fl::reference<double>>(chain_plan(n, {{0}}, 1, 1), {});
}

TEST_CASE("a steady step of several peers allocates nothing, whatever the compressor") {
  const int n = fl::graph_of<case_gpt>().size();
  for (const char* codec : {"no_compression", "ada_top_k", "uniform_top_k", "int8", "half_precision"}) {
    group_options o;
    o.codec = codec;
    check_steady<fl::reference<float>>(chain_plan(n, {{0}, {1}}), o);
    check_steady<fl::reference<float>>(chain_plan(n, {{0, 1}, {2}}), o);
  }
}

TEST_CASE("random headers are refused without allocating for them, or are what the plan expects") {
  engine_group<case_gpt, fl::reference<float>> g(chain_plan(fl::graph_of<case_gpt>().size(), {{0, 1}, {2}}), {});
  std::size_t accepted = 0, refused = 0;
  for (u64 seed = 0; seed < 20000; ++seed) {
    dice d{seed};
    fl::frame_header h;
    // Right with one in eight for each member, else near a bound or anything.
    static constexpr fl::frame_kind kinds[] = {fl::frame_kind::activation, fl::frame_kind::cotangent, fl::frame_kind::gradient,
                                               fl::frame_kind::parameter, fl::summary_kind, fl::verdict_kind};
    h.kind = d.next() % 8 ? kinds[d.next() % std::size(kinds)] : fl::frame_kind(d.next() % 70000);
    h.source = u32(d.next() % 8 ? d.next() % 3 : d.number());
    h.edge = u32(d.next() % 8 ? d.next() % 4 : d.number());
    h.micro_batch = u32(d.next() % 8 ? d.next() % 4 : d.number());
    h.step = d.next() % 8 ? d.next() % 2 : d.number();
    h.total_length = d.number();
    h.raw_length = d.number();
    h.epoch = d.next() % 8 ? 0 : d.next();
    h.codec = fl::u16(d.next() % 4 ? g.engine(0).compute().codec_of_edge(0)->wire_id() : d.next());
    fl::engine& e = g.engine(int(seed % 3));
    forget_largest_allocation();
    const auto why = error_of([&] {
      const auto memory = e.place(h);
      REQUIRE(memory.size() == h.total_length);
      e.abandon(memory);
    });
    CHECK(largest_allocation() <= (16 << 10));
    (why.code == fl::errc::ok ? accepted : refused) += 1;
    if (why.code != fl::errc::ok) CHECK(why.code == fl::errc::protocol);
  }
  CHECK(accepted > 20);
  CHECK(refused > 10000);
  g.train(2);
}
