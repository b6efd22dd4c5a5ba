// SPDX-License-Identifier: Apache-2.0
// Decoding: operators that know earlier times continue where they stopped, as plain loops do.
#include <fusionllm/cuda/operators.hpp>

#include <fusionllm/device/reference.hpp>

#include "operator_run.hpp"
#include "team_device.hpp"
#include "text_model.hpp"

namespace fl = fusionllm;
using fl::i64;

namespace {

constexpr i64 sequences = 2, longest = 75;

template <class Model>
int node_named(std::string_view name) {
  constexpr auto g = fl::graph_of<Model>();
  for (int i = 0; i < g.size(); ++i)
    if (g.nodes[std::size_t(i)].op->name == name) return i;
  return -1;
}

/// The outputs of one node for pieces of a sequence, one after another.
template <class T, class Model>
std::vector<double> decoded(const fl::kernel_table& table, int node, const std::vector<i64>& pieces) {
  constexpr auto g = fl::graph_of<Model>();
  const fl::node& n = g.nodes[std::size_t(node)];
  seam::guarded_memory<T> memory;
  fl::device_context context;
  fl::kernel_args a;
  a.op = &n;
  a.mode = fl::pass::inference;
  a.longest = longest;
  const fl::u64 state = n.op->state(g.view(node, {sequences, longest}));
  if (state) a.state = memory.put(std::vector<double>(std::size_t(state), 1000));
  std::vector<double> all;
  for (i64 times : pieces) {
    const fl::op_view v = g.view(node, {sequences, times});
    for (std::size_t i = 0; i < std::size_t(n.input_count()); ++i)
      a.in[i] = {memory.put(seam::drawn_numbers(std::size_t(v.in[i].count()), fl::u32(100 * a.past + i64(i)))), v.in[i]};
    for (std::size_t i = 0; i < std::size_t(n.param_count()); ++i)
      a.param[i] = {memory.put(seam::drawn_numbers(std::size_t(v.params[i].count()), 7)), v.params[i]};
    a.out = {memory.put(seam::drawn_numbers(std::size_t(v.out.count()), 8)), v.out};
    a.workspace = memory.room(table.workspace_bytes(v));
    table.forward(context, a);
    const auto piece = memory.get(a.out.data, std::size_t(v.out.count()));
    all.insert(all.end(), piece.begin(), piece.end());
    a.past += times;
  }
  CHECK(memory.intact());
  return all;
}

template <class Model>
void check_decoding(std::string_view op) {
  const int node = node_named<Model>(op);
  REQUIRE(node >= 0);
  const auto exact = fl::device_table<Model, fl::reference<double>>();
  const auto alone = fl::device_table<Model, seam::alone>();
  const auto together = fl::device_table<Model, seam::together<32>>();
  for (const std::vector<i64>& pieces : {std::vector<i64>{4, 1, 1, 30, 1, 38}, {70, 1, 4}}) {
    const auto expected = decoded<double, Model>(*exact[std::size_t(node)], node, pieces);
    CHECK(seam::distance_of(decoded<float, Model>(*alone[std::size_t(node)], node, pieces), expected) <= 1e-6);
    CHECK(seam::distance_of(decoded<float, Model>(*together[std::size_t(node)], node, pieces), expected) <= 1e-6);
  }
}

}  // namespace

TEST_CASE("attention continues with the keys and values that it keeps") {
  check_decoding<seam::text_model>("attention");
  check_decoding<seam::llama_like>("attention");
}

TEST_CASE("positions continue at the time that follows") {
  check_decoding<seam::text_model>("positions");
  check_decoding<seam::llama_like>("rotary");
}
