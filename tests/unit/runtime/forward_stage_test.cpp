// SPDX-License-Identifier: Apache-2.0
// Stages answer questions on virtual time, with delays drawn from a seed: the same bits as one process, for every plan.
#include <fusionllm/runtime/forward_stage.hpp>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/runtime/forward_asker.hpp>
#include <fusionllm/runtime/forward_pass.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using bytes = std::vector<std::byte>;

template <class Device>
struct weights_of_seed {
  using real = typename Device::real;
  explicit weights_of_seed(const fl::graph_view& g) {
    for (const auto& p : g.params) {
      all.emplace_back(p.count());
      fl::initialize(all.back().data(), p, 3);
    }
  }
  std::vector<std::vector<real>> all;
};

/// Stages of a plan, and who asks them.
template <class Device>
struct stages {
  struct peer final : fl::forward_host {
    peer(stages& s, const fl::plan& p, int i, const std::vector<fl::forward_output>& outputs, bool emulate) : all(s), self(i), context(1), queue(s.loop) {
      fl::forward_options o;
      o.self = i;
      o.outputs = outputs;
      if (emulate)
        for (const auto& x : outputs) o.holds.emplace_back(fl::forward_program(s.g, p, x.node).tasks.size(), 3 * fl::millisecond * (1 + i));
      const fl::device_binding d{fl::device_table<case_gpt, Device>(), &fl::vector_functions_of<Device>, &context, fl::dtype_of<typename Device::real>};
      it = std::make_unique<fl::forward_stage>(s.g, p, d, std::move(o), queue, *this);
      for (int w : it->weights().all_held())
        std::memcpy(it->weights().of(w).data(), s.weights.all[std::size_t(w)].data(), it->weights().of(w).size());
    }
    void send_forward(int to, const fl::frame_header& h, fl::const_byte_span payload, u64 tag) override {
      all.carry(self, to, h, bytes(payload.begin(), payload.end()));
      it->sent(tag);
    }
    void on_failure(const fl::error& e) override { all.failure = e; }
    stages& all;
    int self;
    typename Device::context context;
    fl::inline_queue queue;
    std::unique_ptr<fl::forward_stage> it;
  };

  stages(const fl::plan& p, std::vector<fl::forward_output> outputs, u64 seed, bool emulate = false)
      : g(fl::graph_of<case_gpt>()), weights(g), delays(seed), asker(g, p, outputs, fl::dtype_of<typename Device::real>) {
    int count = 0;
    for (const auto& r : p.peers)
      for (int i : r) count = std::max(count, i + 1);
    for (int i = 0; i < count; ++i) peers.push_back(p.stage_of_peer(i) < 0 ? nullptr : std::make_unique<peer>(*this, p, i, outputs, emulate));
  }

  void carry(int from, int to, fl::frame_header h, bytes payload) {
    h.total_length = payload.size();
    const u32 r = fl::random_word({delays, 0, 0, 0}, counter++);
    loop.after(fl::nanoseconds(1 + r % 5'000'000), [this, from, to, h, payload] {
      try {
        arrive(from, to, h, payload);
      } catch (const fl::error& e) {
        failure = e;
      }
    });
  }
  void arrive(int from, int to, const fl::frame_header& h, const bytes& payload) {
    if (lost && from != -1 && to != -1) return;
    const auto memory = to < 0 ? asker.place(from, h) : peers[std::size_t(to)]->it->place(from, h);
    std::memcpy(memory.data(), payload.data(), payload.size());
    if (to < 0) asker.deliver(from, h, memory);
    else peers[std::size_t(to)]->it->deliver(from, h, memory);
  }
  void ask(int output, const fl::question& q, std::span<const void* const> inputs) {
    asker.ask(output, q, inputs, [&](int to, const fl::frame_header& h, bytes payload) { carry(-1, to, h, std::move(payload)); });
  }
  bytes answer(int output) {
    while (!failure && !asker.answered(output) && loop.run_one(fl::reactor::forever)) {
    }
    if (failure) throw fl::error(*failure);
    if (!asker.answered(output)) return {};
    bytes memory;
    (void)asker.take(output, memory);
    return memory;
  }

  fl::graph_view g;
  weights_of_seed<Device> weights;
  fl::virtual_reactor loop;
  u64 delays, counter = 0;
  bool lost = false;
  std::optional<fl::error> failure;
  fl::forward_asker asker;
  std::vector<std::unique_ptr<peer>> peers;
};

fl::plan alternating(int nodes) {
  fl::plan p = chain_plan(nodes, {{0}, {1}, {2}});
  for (int i = 0; i < nodes; ++i) p.stage_of[std::size_t(i)] = (i / 3) % 3;
  return p;
}
std::vector<fl::plan> plans(int nodes) {
  std::vector<fl::plan> r{chain_plan(nodes, {{0}}), chain_plan(nodes, {{1}, {0}}), chain_plan(nodes, {{0}, {1}, {2}, {3}}), alternating(nodes),
                          chain_plan(nodes, {{0, 3}, {2, 1}})};
  r.push_back(r[1]);
  for (int i = nodes - 3; i < nodes; ++i) r.back().stage_of[std::size_t(i)] = 0;  // first and last on one peer
  return r;
}

template <class Device>
void whole_everywhere(bool emulate) {
  using real = typename Device::real;
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  weights_of_seed<Device> weights(g);
  typename Device::context context(1);
  const fl::device_binding d{fl::device_table<case_gpt, Device>(), &fl::vector_functions_of<Device>, &context, fl::dtype_of<real>};
  const auto weight = [&](int p) -> void* { return weights.all[std::size_t(p)].data(); };
  const fl::sizes bounds{4, case_gpt::time};
  fl::local_forward loss(fl::inference(g, g.loss, d, bounds, weight)), logit(fl::inference(g, logits, d, bounds, weight));
  const std::vector<fl::sizes> sizes{{4, 12}, {1, 12}, {3, 5}, {1, 1}, {4, 12}, {2, 7}};
  std::vector<token_batch> batches;
  std::vector<std::vector<const void*>> inputs;
  std::vector<bytes> expected[2];
  for (const fl::sizes& s : sizes) {
    batches.emplace_back(s.batch, s.time);
    batches.back().fill(u64(s.batch * 100 + s.time), case_gpt::vocabulary);
    inputs.emplace_back(g.nodes.size(), nullptr);
    inputs.back()[0] = batches.back().tokens.data();
    inputs.back()[1] = batches.back().targets.data();
    for (auto [pass, to] : {std::pair{&loss, &expected[0]}, std::pair{&logit, &expected[1]}}) {
      const fl::tensor_ref r = pass->run(s, inputs.back(), 0.125);
      const auto* from = r.template as<std::byte>();
      to->emplace_back(from, from + std::size_t(r.count()) * sizeof(real));
    }
  }
  for (const fl::plan& p : plans(g.size()))
    for (u64 seed = 1; seed <= 5; ++seed) {
      stages<Device> all(p, {{g.loss, fl::inference_kind::whole, bounds, 3}, {logits, fl::inference_kind::whole, bounds, 2}}, seed, emulate);
      std::size_t asked[2]{}, taken[2]{};
      while (taken[0] < sizes.size() || taken[1] < sizes.size())
        for (int o = 0; o < 2; ++o) {
          while (asked[o] < sizes.size() && int(all.asker.under_way(o)) < all.asker.window(o)) {
            all.ask(o, {sizes[asked[o]], 0, 0.125, false}, inputs[asked[o]]);
            ++asked[o];
          }
          if (taken[o] < sizes.size()) {
            const bytes got = all.answer(o);
            INFO("plan of " << p.stages() << " stages, seed " << seed << ", output " << o << ", question " << taken[o]);
            REQUIRE(got == expected[o][taken[o]]);
            ++taken[o];
          }
        }
      for (auto& x : all.peers) CHECK((!x || x->it->idle()));
    }
}

}  // namespace

TEST_CASE("stages answer with the bits of one process, for every plan, in any order of arrival") {
  whole_everywhere<fl::reference<float>>(false);
  whole_everywhere<fl::reference<double>>(true);
  whole_everywhere<fl::cpu>(false);
}

TEST_CASE("stages decode with the bits of one decoder, each with the state of its own operators") {
  using device = fl::cpu;
  const auto g = fl::graph_of<case_gpt>();
  const int logits = fl::find_output(g, "logits");
  weights_of_seed<device> weights(g);
  device::context context(1);
  const fl::device_binding d{fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, fl::dtype::f32};
  for (const fl::plan& p : plans(g.size())) {
    fl::inference decoder(g, logits, d, {1, 12}, [&](int i) -> void* { return weights.all[std::size_t(i)].data(); }, fl::inference_kind::decoding);
    stages<device> all(p, {{logits, fl::inference_kind::decoding, {1, 12}, 1}}, 9);
    std::vector<std::int32_t> tokens{3, 60, 1, 7, 7, 9, 30, 2, 5, 11, 40, 41};
    std::vector<const void*> inputs(g.nodes.size());
    i64 past = 0;
    for (const i64 n : {5, 1, 1, 3, 2}) {
      inputs[0] = tokens.data() + past;
      const fl::tensor_ref r = decoder.run({1, n}, inputs, 1, past);
      const std::size_t row = case_gpt::vocabulary * sizeof(float);
      all.ask(0, {{1, n}, past, 1, true}, inputs);
      const bytes got = all.answer(0);
      REQUIRE(got.size() == row);
      CHECK(std::memcmp(got.data(), r.as<std::byte>() + std::size_t(n - 1) * row, row) == 0);
      past += n;
    }
  }
}

TEST_CASE("who waits says for whom, and for what") {
  const auto g = fl::graph_of<case_gpt>();
  stages<fl::reference<float>> all(chain_plan(g.size(), {{0}, {1}}), {{g.loss, fl::inference_kind::whole, {2, 4}, 1}}, 1);
  token_batch b(2, 4);
  b.fill(1, case_gpt::vocabulary);
  std::vector<const void*> inputs(g.nodes.size());
  inputs[0] = b.tokens.data();
  inputs[1] = b.targets.data();
  all.lost = true;  // nothing arrives between peers
  all.ask(0, {{2, 4}, 0, 1, false}, inputs);
  CHECK(all.answer(0).empty());
  CHECK(all.peers[0]->it->idle());
  CHECK(all.peers[1]->it->waiting_for().find("peer 0 for the activation of node ") == 0);
  CHECK(all.peers[1]->it->waiting_for().find("in question 0 about node " + std::to_string(g.loss)) != std::string::npos);
  CHECK(all.asker.owing() == 1);
}

TEST_CASE("what nobody should send is refused before memory is taken for it") {
  const auto g = fl::graph_of<case_gpt>();
  stages<fl::reference<float>> all(chain_plan(g.size(), {{0}, {1}}), {{g.loss, fl::inference_kind::whole, {2, 4}, 1}}, 1);
  fl::forward_stage& x = *all.peers[1]->it;
  fl::frame_header h;
  const auto refused = [&](int from, const char* words) {
    const auto e = error_of([&] { x.place(from, h); });
    INFO(words);
    CHECK(e.says(fl::errc::protocol, words));
  };
  h.kind = fl::question_kind;
  h.total_length = 48 + 8 * 4;
  refused(0, "only the broker asks");
  h.total_length = u64(1) << 40;
  refused(-1, "expected");
  h.total_length = 48;
  h.micro_batch = 1;
  refused(-1, "output 1 of 1");
  h.micro_batch = 0;
  h.epoch = 3;
  refused(-1, "plan 3");
  h.epoch = 0;
  h.kind = fl::frame_kind::cotangent;
  refused(0, "kind");
  h.kind = fl::frame_kind::activation;
  h.edge = 99;
  refused(0, "edge 99");
  h.edge = 0;
  h.codec = 2;
  refused(0, "codec 2");
  h.codec = 0;
  refused(2, "does not have it send");
  h.total_length = 1;
  refused(0, "1 bytes");
  // A question that is larger than its frame says, one that asks for too much, and one about a token that there is not.
  h = {};
  h.kind = fl::question_kind;
  const auto question_of = [&](fl::question q, int token, std::size_t extra) {
    const auto inputs = fl::inputs_of(g, fl::forward_program(g, chain_plan(g.size(), {{0}, {1}}), g.loss), 0);
    REQUIRE(inputs == std::vector<int>{0});
    bytes m(fl::question::bytes + 4 * std::size_t(q.run.batch * q.run.time) + extra);
    q.encode(m.data());
    std::memcpy(m.data() + fl::question::bytes, &token, 4);
    h.total_length = m.size();
    return m;
  };
  fl::forward_stage& first = *all.peers[0]->it;
  const auto told = [&](const bytes& m) { return error_of([&] { first.deliver(-1, h, m); }); };
  CHECK(told(question_of({{2, 2}, 0, 1, false}, 1, 8)).says(fl::errc::protocol, "64 bytes, expected 56"));
  CHECK(told(question_of({{2, 2}, 0, 1, false}, -5, 0)).says(fl::errc::model, "is -5"));
}
