// SPDX-License-Identifier: Apache-2.0
// The CPU's kernels one by one, with the small GPT's shapes: 16 sequences of 128 tokens, width 256. Each benchmark's
// argument is the number of threads; rates are floating-point operations, or bytes that have to be moved, per second.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include <fusionllm/device/cpu.hpp>
#include <fusionllm/ops/ops.hpp>

namespace fl = fusionllm;
using fl::i64;

namespace {

enum class part { forward, backward_input, backward_weight };

/// One operator's node and memory for all its tensors.
class operation {
 public:
  template <class Op>
  static operation of(std::vector<fl::extents> inputs, std::vector<fl::extents> params, fl::extents out,
                      fl::attributes attr = {}) {
    operation o;
    o.table_ = &fl::kernel_table_of<Op, fl::cpu>;
    o.node_->op = &fl::traits_of<Op>;
    o.node_->attr = o.view_.attr = attr;
    o.view_.out = out;
    for (std::size_t i = 0; i < inputs.size(); ++i) o.args_.in[i] = o.tensor(o.view_.in[i] = inputs[i]);
    for (std::size_t i = 0; i < params.size(); ++i) {
      o.args_.param[i] = o.tensor(o.view_.params[i] = params[i]);
      o.args_.d_param[i] = o.tensor(params[i]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) o.args_.d_in[i] = o.tensor(inputs[i]);
    o.node_->in[0] = 0;
    if (inputs.size() > 1) o.node_->in[1] = 1;
    o.args_.out = o.tensor(out);
    o.args_.d_out = o.tensor(out);
    o.args_.saved = o.memory(i64(Op::saved(o.view_)));
    o.args_.workspace = o.memory(i64(o.table_->workspace_bytes(o.view_) / 4));
    o.args_.op = o.node_.get();
    o.args_.loss_scale = 1e-3;
    return o;
  }
  /// in[i] as integers below `limit`.
  operation& integers(std::size_t i, int limit) {
    args_.in[i].type = fl::dtype::int32;
    for (i64 k = 0; k < args_.in[i].count(); ++k) args_.in[i].as<std::int32_t>()[k] = std::int32_t(k * 7919 % limit);
    return *this;
  }

  void run(benchmark::State& state, part p, double flops, double bytes = 0) {
    fl::cpu::context c(int(state.range(0)));
    table_->forward(c, args_);
    const auto f = p == part::forward ? table_->forward
                                      : p == part::backward_input ? table_->backward_input : table_->backward_weight;
    for (auto _ : state) f(c, args_);
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    if (flops > 0) state.counters["FLOP/s"] = benchmark::Counter(flops, rate, benchmark::Counter::kIs1000);
    if (bytes > 0) state.counters["B/s"] = benchmark::Counter(bytes, rate, benchmark::Counter::kIs1000);
  }
  double flops(part p) const {
    return double(p == part::forward          ? node_->op->flops(view_)
                  : p == part::backward_input ? node_->op->flops_backward_input(view_)
                                              : node_->op->flops_backward_weight(view_));
  }
  double bytes() const { return 4.0 * double(view_.out.count()); }

 private:
  float* memory(i64 n) {
    memory_.push_back(std::make_unique<std::vector<float>>(std::size_t(n), 0.0f));
    auto& v = *memory_.back();
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = fl::uniform(fl::random_word({1, memory_.size(), 0, 0}, i)) - 0.5f;
    return v.data();
  }
  fl::tensor_ref tensor(const fl::extents& e) { return {memory(e.count()), e, fl::dtype::f32}; }

  const fl::kernel_table* table_ = nullptr;
  std::unique_ptr<fl::node> node_ = std::make_unique<fl::node>();
  fl::op_view view_;
  fl::kernel_args args_;
  std::vector<std::unique_ptr<std::vector<float>>> memory_;
};

constexpr i64 sequences = 16, tokens = 128;

fl::extents dims(std::initializer_list<i64> d) {
  fl::extents e;
  for (i64 x : d) e.d[std::size_t(e.rank++)] = x;
  return e;
}
fl::extents activations(i64 features) { return dims({sequences, tokens, features}); }

void linear(benchmark::State& s, part p, i64 in, i64 out) {
  auto o = operation::of<fl::linear_op>({activations(in)}, {dims({out, in}), dims({out})}, activations(out));
  o.run(s, p, o.flops(p));
}
void attention(benchmark::State& s, part p) {
  auto o = operation::of<fl::attention_op>({activations(768)}, {}, activations(256), {{4, 0, 0}, 0});
  o.run(s, p, o.flops(p));
}
void layer_norm(benchmark::State& s, part p) {
  auto o = operation::of<fl::layer_norm_op>({activations(256)}, {dims({256}), dims({256})}, activations(256), {{}, 1e-5});
  o.run(s, p, 0, o.bytes() * (p == part::backward_input ? 3 : 2));
}
void gelu(benchmark::State& s, part p) {
  auto o = operation::of<fl::gelu_op>({activations(1024)}, {}, activations(1024));
  o.run(s, p, 0, o.bytes() * (p == part::forward ? 2 : 3));
}
void dropout(benchmark::State& s, part p) {
  auto o = operation::of<fl::dropout_op>({activations(256)}, {}, activations(256), {{}, 0.1});
  o.run(s, p, 0, o.bytes() * 2);
}
void add(benchmark::State& s, part p) {
  auto o = operation::of<fl::add_op>({activations(256), activations(256)}, {}, activations(256));
  o.run(s, p, 0, o.bytes() * 3);
}
void embedding(benchmark::State& s, part p) {
  auto o = operation::of<fl::embedding_op>({dims({sequences, tokens})}, {dims({256, 256})}, activations(256));
  o.integers(0, 256).run(s, p, 0, o.bytes() * 2);
}
void cross_entropy(benchmark::State& s, part p) {
  auto o = operation::of<fl::cross_entropy_op>({activations(256), dims({sequences, tokens})}, {}, dims({1}), {{-100, 0, 0}, 0});
  o.integers(1, 256).run(s, p, 0, 4.0 * double(sequences * tokens * 256) * (p == part::forward ? 1 : 2));
}

void update(benchmark::State& s, bool norm) {
  const i64 n = 3'300'000;
  fl::cpu::context c(int(s.range(0)));
  std::vector<float> w(n, 1.0f), g(n, 1e-3f), m(n, 0.0f), v(n, 1e-6f);
  const auto f = fl::adamw_factors_of<float>({}, 10, 3e-4, 0.5, true);
  for (auto _ : s) {
    if (norm) benchmark::DoNotOptimize(fl::sum_of_squares(c, g.data(), n));
    else fl::adamw_update(c, w.data(), g.data(), m.data(), v.data(), n, f);
  }
  s.counters["B/s"] = benchmark::Counter(4.0 * double(n) * (norm ? 1 : 7), benchmark::Counter::kIsIterationInvariantRate);
}

void one_and_two(benchmark::internal::Benchmark* b) { b->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond); }

}  // namespace

BENCHMARK_CAPTURE(linear, forward_256_768, part::forward, 256, 768)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, forward_256_1024, part::forward, 256, 1024)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, forward_1024_256, part::forward, 1024, 256)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, backward_input_256_1024, part::backward_input, 256, 1024)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, backward_weight_256_256, part::backward_weight, 256, 256)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, backward_weight_256_1024, part::backward_weight, 256, 1024)->Apply(one_and_two);
BENCHMARK_CAPTURE(linear, backward_weight_1024_256, part::backward_weight, 1024, 256)->Apply(one_and_two);
BENCHMARK_CAPTURE(attention, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(attention, backward, part::backward_input)->Apply(one_and_two);
BENCHMARK_CAPTURE(layer_norm, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(layer_norm, backward_input, part::backward_input)->Apply(one_and_two);
BENCHMARK_CAPTURE(layer_norm, backward_weight, part::backward_weight)->Apply(one_and_two);
BENCHMARK_CAPTURE(gelu, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(gelu, backward, part::backward_input)->Apply(one_and_two);
BENCHMARK_CAPTURE(dropout, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(add, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(embedding, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(embedding, backward_weight, part::backward_weight)->Apply(one_and_two);
BENCHMARK_CAPTURE(cross_entropy, forward, part::forward)->Apply(one_and_two);
BENCHMARK_CAPTURE(cross_entropy, backward, part::backward_input)->Apply(one_and_two);
BENCHMARK_CAPTURE(update, adamw, false)->Apply(one_and_two);
BENCHMARK_CAPTURE(update, sum_of_squares, true)->Apply(one_and_two);
