// SPDX-License-Identifier: Apache-2.0
// The bodies of the GPU's kernels, run here by teams of one, against plain loops: the same bits for element-wise chains
// (random words included), for every length of the last, short quad, aligned and not.
#include <fusionllm/cuda/host_team_device.hpp>

#include <fusionllm/cuda/select.hpp>

#include "barrier_team.hpp"
#include "catch.hpp"
#include "model.hpp"
#include "node_run.hpp"

namespace fl = fusionllm;
using seam::numbers;

namespace {

/// Puts every tensor 4 bytes past a multiple of 16.
struct misaligned_memory : seam::host_memory {
  void* put(const numbers& x) {
    numbers& room = kept.emplace_back(x.size() + 8);
    float* at = room.data();
    while (reinterpret_cast<std::size_t>(at) % 16 != 4) ++at;
    std::copy(x.begin(), x.end(), at);
    return at;
  }
};

void check_close(const numbers& found, const numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-5));
}

/// Of operators that are not element-wise the linear one: operator_check.hpp has the others.
template <class Memory>
void compare_all(const seam::node_case& c) {
  const auto expected_table = fl::device_table<seam::model, fl::reference<float>>();
  const auto table = fl::device_table<seam::model, fl::host_team_device>();
  const fl::node& n = c.graph.nodes[std::size_t(c.node)];
  const bool linear = n.op->name == "linear";
  if (!table[std::size_t(c.node)] || !(n.links || n.op->elementwise || linear)) return;
  INFO("node " << c.node << " (" << c.graph.nodes[std::size_t(c.node)].op->name << "), batch " << c.sizes.batch);
  fl::reference<float>::context expected_context;
  fl::host_team_device::context context;
  seam::host_memory expected_memory;
  Memory memory;
  const auto expected = seam::run_node(c, *expected_table[std::size_t(c.node)], expected_context, expected_memory);
  const auto found = seam::run_node(c, *table[std::size_t(c.node)], context, memory);
  if (!linear) {
    CHECK(found.out == expected.out);
    CHECK(found.d_in == expected.d_in);
    return;
  }
  check_close(found.out, expected.out);
  for (std::size_t i = 0; i < found.d_in.size(); ++i) check_close(found.d_in[i], expected.d_in[i]);
  REQUIRE(found.d_param.size() == expected.d_param.size());
  for (std::size_t p = 0; p < found.d_param.size(); ++p) check_close(found.d_param[p], expected.d_param[p]);
}

/// Chains over vectors of any length, which 48 features never give: one element a sample.
struct thin {
  static constexpr auto define(auto& g) {
    auto x = fl::input<fl::real, fl::batch>(g, "x");
    auto y = fl::input<fl::real, fl::batch>(g, "y");
    return (x | fl::dropout(0.5) | fl::relu) * y + x;
  }
};

}  // namespace

TEST_CASE("kernel bodies on host teams equal the reference") {
  constexpr auto g = fl::graph_of<seam::model>();
  for (int node = 0; node < g.size(); ++node)
    for (fl::i64 batch : {1, 2, 37})
      for (fl::pass mode : {fl::pass::training, fl::pass::inference}) {
        compare_all<seam::host_memory>({g, node, {batch, 1}, mode, false});
        compare_all<misaligned_memory>({g, node, {batch, 1}, mode, true});
      }
}

TEST_CASE("a chain of any length, and nothing written past its end") {
  constexpr auto g = fl::graph_of<thin>();
  const int node = g.size() - 1;
  REQUIRE(g.nodes[std::size_t(node)].links == 4);
  const auto expected_table = fl::device_table<thin, fl::reference<float>>();
  const auto table = fl::device_table<thin, fl::host_team_device>();
  fl::reference<float>::context expected_context;
  fl::host_team_device::context context;
  for (fl::i64 batch = 1; batch < 70; ++batch) {
    seam::host_memory a, b;
    const seam::node_case c{g, node, {batch, 1}, fl::pass::training, true};
    const auto expected = seam::run_node(c, *expected_table[std::size_t(node)], expected_context, a);
    const auto found = seam::run_node(c, *table[std::size_t(node)], context, b);
    CHECK(found.out == expected.out);
    CHECK(found.d_in == expected.d_in);
  }
  numbers guarded(11, 7.f);
  fl::store_quad<false>(fl::quad<float>{{1, 2, 3, 4}}, guarded.data(), 4, 6);
  CHECK(guarded == numbers{7, 7, 7, 7, 1, 2, 7, 7, 7, 7, 7});
}

TEST_CASE("column sums on teams add to what is there") {
  for (fl::i64 rows : {0, 1, 5}) {
    const numbers x = seam::drawn(std::size_t(rows * 9), 1);
    numbers sum = seam::drawn(9, 2), expected = sum;
    for (std::size_t c = 0; c < 9; ++c) {
      float part = 0;
      for (fl::i64 r = 0; r < rows; ++r) part += x[std::size_t(r) * 9 + c];
      expected[c] += part;
    }
    float shared[1];
    seam::host_launch::run(4, [&](auto team) { fl::column_sum(team, x.data(), rows, 9, sum.data(), shared); });
    CHECK(sum == expected);
  }
}

TEST_CASE("column sums by the members of a team, two strips of rows") {
  constexpr fl::i64 rows = 7, columns = 45;
  const numbers x = seam::drawn(rows * columns, 1);
  numbers sum(columns, 1.f), shared(64);
  seam::barrier_launch<64>::run(1, [&](auto team) {
    fl::column_sum(team, x.data(), rows, columns, sum.data(), shared.data());
  });
  for (std::size_t c = 0; c < columns; ++c) {
    float strip[2] = {0, 0};
    for (std::size_t r = 0; r < rows; ++r) strip[r % 2] += x[r * columns + c];
    CHECK(sum[c] == 1.f + (strip[0] + strip[1]));
  }
}

TEST_CASE("launch geometry covers every element, also of more than 2^31") {
  static_assert(fl::blocks_for(0, 256, 1000) == 1);
  static_assert(fl::blocks_for(1, 256, 1000) == 1);
  static_assert(fl::blocks_for(257, 256, 1000) == 2);
  static_assert(fl::blocks_for(fl::i64(1) << 40, 256, 1000) == 1000);
  static_assert(fl::blocks_for(fl::i64(3) << 31, 1 << 20, 10'000) == 3 << 11);
  static_assert(fl::tiles_of((fl::i64(1) << 32) - 1, fl::block_size) == 1 << 19);
  static_assert(fl::tiles_of(1, 1) == 1 && fl::tiles_of(fl::tile_elements(1) + 1, 1) == 2);
}
