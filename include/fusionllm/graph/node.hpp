// SPDX-License-Identifier: Apache-2.0
// The OP-DAG as values: nodes in topological order, parameters with global names, named inputs and outputs.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "../core/name.hpp"
#include "operator.hpp"

namespace fusionllm::inline v0 {

/// Logical element types of a model: `real` is what the device's precision says.
struct real {};
struct i32 {};
enum class element : u8 { real, i32 };
template <class E>
struct check_element {
  static_assert(std::is_same_v<E, real> || std::is_same_v<E, i32>,
                "the elements of a model's tensors are fusionllm::real or fusionllm::i32");
  static constexpr element value = std::is_same_v<E, i32> ? element::i32 : element::real;
};
template <class E>
inline constexpr element element_of = check_element<E>::value;

/// How a parameter starts: every element is a function of (seed, the parameter's name, its index), so that each owner
/// makes its own part.
struct initializer {
  enum class kind : u8 { zeros, ones, normal, fan_in, fan_out, uniform } how = kind::fan_in;
  double deviation = 0;  ///< standard deviation of `normal`; the fan-in of `uniform`, 0: the parameter's own
  constexpr bool operator==(const initializer&) const = default;
};
constexpr initializer normal(double deviation) { return {initializer::kind::normal, deviation}; }
/// Normal with variance 1 / (3 fan-in), all extents but the first being the fan-in: the variance that PyTorch's linear
/// starts with.
inline constexpr initializer fan_in{initializer::kind::fan_in, 0};
/// Normal with variance 2 / fan-out, all extents but the second being the fan-out (He et al., arXiv 1502.01852).
inline constexpr initializer fan_out{initializer::kind::fan_out, 0};
/// Uniform within 1 / sqrt(fan-in), as PyTorch's linear starts; a bias names the fan-in of its weight.
constexpr initializer uniform(double fan = 0) { return {initializer::kind::uniform, fan}; }
inline constexpr initializer zeros{initializer::kind::zeros, 0};
inline constexpr initializer ones{initializer::kind::ones, 0};

struct parameter_info {
  name path;     ///< global name, e.g. "h.0.mlp.c_fc.weight"
  extents dims;  ///< concrete
  initializer init;
  bool decays = true;  ///< weight decay applies (not to norms and biases)
  /// From 0 to 1: a running statistic, which no optimizer sees. Each micro-batch's value s makes it (1 - momentum) times
  /// what it was plus momentum * s, in ascending order; `backward_weight` adds s as it would a gradient.
  double momentum = -1;
  constexpr bool trained() const { return momentum < 0; }
  constexpr u64 count() const { return u64(dims.count()); }
};

struct kernel_table;  // of the device layer: how an operator is computed

/// One element-wise operator inside a fused chain. Its first input is the link before it (for the first link: in[0]).
struct chain_link {
  const operator_traits* op = nullptr;
  attributes attr{};
  int traced_id = -1;
  int side = -1;  ///< index into the node's inputs of this link's second input, -1 if it has none
};

struct node {
  const operator_traits* op = nullptr;
  extents out{};  ///< may hold `batch` and `time`
  element type = element::real;
  std::array<int, max_inputs> in{-1, -1, -1, -1, -1};
  std::array<int, max_params> params{-1, -1, -1, -1};
  attributes attr{};
  name scope{};        ///< e.g. "h.0.mlp.c_fc"; a model input's name
  int traced_id = -1;  ///< position before fusion: keys random numbers, so that fusion does not change them
  int links = 0;       ///< operators in a fused chain; 0: not fused
  std::array<chain_link, max_links> chain{};

  constexpr int input_count() const {
    int n = 0;
    while (n < max_inputs && in[std::size_t(n)] >= 0) ++n;
    return n;
  }
  constexpr int param_count() const {
    int n = 0;
    while (n < max_params && params[std::size_t(n)] >= 0) ++n;
    return n;
  }
};

struct named_output {
  name path;
  int node = -1;
};

/// One truth value a node (std::vector<bool> is not constexpr in clang 14).
using flags = std::vector<u8>;

/// A graph that lives elsewhere (usually static storage). Every layer above `ops` works on this, not on the model's
/// type.
struct graph_view {
  std::span<const node> nodes;
  std::span<const parameter_info> params;
  std::span<const named_output> outputs;
  int loss = -1;  ///< the node that `define` returned

  /// Shapes of node i for given run-time extents.
  constexpr op_view view(int i, const sizes& s) const {
    const node& n = nodes[std::size_t(i)];
    op_view v;
    v.out = n.out.resolve(s);
    v.attr = n.attr;
    for (std::size_t k = 0; k < max_inputs; ++k)
      if (n.in[k] >= 0) v.in[k] = nodes[std::size_t(n.in[k])].out.resolve(s);
    for (std::size_t k = 0; k < max_params; ++k)
      if (n.params[k] >= 0) v.params[k] = params[std::size_t(n.params[k])].dims;
    return v;
  }
  constexpr int size() const { return int(nodes.size()); }
};

/// Whether samples are sequences: an input of the model has the extent `time`.
constexpr bool has_time(const graph_view& g) {
  for (const node& n : g.nodes)
    for (int axis = 0; n.op->placeholder && axis < n.out.rank; ++axis)
      if (n.out.d[std::size_t(axis)] == fusionllm::time) return true;
  return false;
}
/// Tokens of a batch; samples, of a model whose samples are no sequences.
constexpr i64 tokens_in(const graph_view& g, const sizes& s) { return s.batch * (has_time(g) ? s.time : 1); }
/// What these are.
constexpr const char* name_of_tokens(const graph_view& g) { return has_time(g) ? "tokens" : "samples"; }

}  // namespace fusionllm::inline v0
