// SPDX-License-Identifier: Apache-2.0
// Causal attention backward without atomics: probabilities are recomputed from the rows' log-sum-exps, once by teams that
// have a tile of queries and sum over the keys, once by teams that have a tile of keys and sum over the queries, heads of
// a group in ascending order.
#pragma once

#include "attention_heads.hpp"
#include "tile.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Of each row: the sum of out * d_out, which is the mean of the probabilities' cotangents.
template <class T>
struct attention_dots {
  attention_shape s;
  const T *out, *d_out;
  float* dots;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, s.sequences * s.heads * s.queries, [&](i64 r) {
      const i64 t = r % s.queries, h = r / s.queries % s.heads, b = r / s.queries / s.heads;
      const i64 at = s.output_at(b, h, t);
      float sum = 0;
      each_member(team, s.width, [&](i64 i) { sum += float(out[at + i]) * float(d_out[at + i]); });
      sum = team.sum(sum);
      if (team.rank == 0) dots[r] = sum;
    });
  }
};

/// What both directions need of a tile of queries and a tile of keys.
template <class T, int W>
struct attention_pair {
  static constexpr int edge = attention_tiles<T, W>::edge;  ///< queries, and keys, in a tile
  static constexpr int row = tile_row<T>(W), s_row = sum_row(edge);
  /// Numbers of type T that replace fp32 sums, row on row.
  static constexpr int p_row = s_row * int(sizeof(float) / sizeof(T));

  attention_shape s;
  attention_heads<const T> x;
  const T* d_out;
  const float *saved, *dots;

  struct memory {
    struct tiles {
      alignas(32) tile_element<T> q[edge * row];
      alignas(32) tile_element<T> dy[edge * row];
      alignas(32) tile_element<T> k[edge * row];
      alignas(32) tile_element<T> v[edge * row];
      alignas(32) float p[edge * s_row];   ///< scores, then probabilities
      alignas(32) float ds[edge * s_row];  ///< cotangents of probabilities, then of scores
    };
    union {
      tiles in;
      alignas(32) float out[edge * sum_row(W)];
    };
    float lse[edge], dot[edge];
    FL_HD tile_element<T>* p() { return reinterpret_cast<tile_element<T>*>(in.p); }
    FL_HD tile_element<T>* ds() { return reinterpret_cast<tile_element<T>*>(in.ds); }
  };

  template <class Team>
  FL_HD void load_queries(const Team& team, memory& m, i64 b, i64 h, i64 first) const {
    const i64 left = s.queries - first;
    load_tile<edge, W>(team, x.query(b, h, first), x.q_part.stride, left, s.width, m.in.q);
    load_tile<edge, W>(team, d_out + s.output_at(b, h, first), s.features, left, s.width, m.in.dy);
    each_member(team, edge, [&](i64 r) {
      m.lse[r] = r < left ? saved[s.row_at(b, h, first + r)] : 0.0f;
      m.dot[r] = r < left ? dots[s.row_at(b, h, first + r)] : 0.0f;
    });
  }
  template <class Team>
  FL_HD void load_keys(const Team& team, memory& m, i64 b, i64 h, i64 first) const {
    load_tile<edge, W>(team, x.key(b, h, first), x.k_part.stride, s.keys - first, s.width, m.in.k);
    load_tile<edge, W>(team, x.value(b, h, first), x.v_part.stride, s.keys - first, s.width, m.in.v);
  }

  /// m.p: the probabilities of the tiles from queries and keys on, m.ds: the cotangents of their scores. Waits before
  /// and after.
  template <class Team>
  FL_HD void probabilities(const Team& team, memory& m, i64 queries, i64 keys) const {
    constexpr int own = (edge * edge + int(Team::size) - 1) / int(Team::size);
    team.wait();
    {
      matrix_part<T, edge, edge, Team> score(team), dp(team);
      score.template multiply<W>(tile_view<T, row, 1>{m.in.q}, tile_view<T, 1, row>{m.in.k});
      dp.template multiply<W>(tile_view<T, row, 1>{m.in.dy}, tile_view<T, 1, row>{m.in.v});
      score.template store<s_row>(m.in.p);
      dp.template store<s_row>(m.in.ds);
    }
    team.wait();
    float p[own] = {}, ds[own] = {};
    for (int i = 0; i < own; ++i) {
      const int at = int(team.rank) + i * int(Team::size), r = at / edge, c = at % edge;
      if (at >= edge * edge) continue;
      const bool seen = keys + c <= queries + r && queries + r < s.queries;
      p[i] = seen ? std::exp(m.in.p[r * s_row + c] * s.scale - m.lse[r]) : 0.0f;
      ds[i] = p[i] * (m.in.ds[r * s_row + c] - m.dot[r]) * s.scale;
    }
    team.wait();
    for (int i = 0; i < own; ++i) {
      const int at = int(team.rank) + i * int(Team::size), r = at / edge, c = at % edge;
      if (at >= edge * edge) continue;
      m.p()[r * p_row + c] = to_tile<T>(p[i]);
      m.ds()[r * p_row + c] = to_tile<T>(ds[i]);
    }
    team.wait();
  }

  /// The rows of sums that there are, to where `place(row)` says. All members wait before and after.
  template <class Team, class Part, class Place>
  FL_HD static void write(const Team& team, memory& m, Part& part, i64 rows, i64 width, Place&& place) {
    part.template store<sum_row(W)>(m.out);
    team.wait();
    write_tile<edge, W>(team, m.out, rows, width, place, [](int) { return 1.0f; });
    team.wait();
  }
};

template <class T, int W>
struct attention_query_cotangent {
  static constexpr bool many_registers = true;
  using pair = attention_pair<T, W>;
  static constexpr int edge = pair::edge;
  pair of;
  attention_heads<T> d;

  template <class Team>
  using shared = typename pair::memory;

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    const auto& s = of.s;
    const i64 tiles = (s.queries + edge - 1) / edge, heads = s.sequences * s.heads;
    each_row(team, tiles * heads, [&](i64 item) {  // late queries, which read most keys, first
      const i64 first = (tiles - 1 - item / heads) * edge, b = item % heads / s.heads, h = item % heads % s.heads;
      of.load_queries(team, m, b, h, first);
      matrix_part<T, edge, W, Team> dq(team);
      for (i64 key = 0; key <= first; key += edge) {
        of.load_keys(team, m, b, h / s.group, key);
        of.probabilities(team, m, first, key);
        dq.template multiply<edge>(tile_view<T, pair::p_row, 1>{m.ds()}, tile_view<T, pair::row, 1>{m.in.k});
        team.wait();
      }
      pair::write(team, m, dq, s.queries - first, s.width, [&](int r) { return d.query(b, h, first + r); });
    });
  }
};

template <class T, int W>
struct attention_key_cotangent {
  static constexpr bool many_registers = true;
  using pair = attention_pair<T, W>;
  static constexpr int edge = pair::edge;
  pair of;
  attention_heads<T> d;

  template <class Team>
  using shared = typename pair::memory;

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    const auto& s = of.s;
    const i64 tiles = (s.keys + edge - 1) / edge, heads = s.sequences * s.kv_heads;
    each_row(team, tiles * heads, [&](i64 item) {  // early keys, which most queries read, first
      const i64 first = item / heads * edge, b = item % heads / s.kv_heads, h = item % heads % s.kv_heads;
      of.load_keys(team, m, b, h, first);
      matrix_part<T, edge, W, Team> dk(team), dv(team);
      for (i64 head = h * s.group; head < (h + 1) * s.group; ++head)
        for (i64 query = first; query < s.queries; query += edge) {
          of.load_queries(team, m, b, head, query);
          of.probabilities(team, m, query, first);
          dv.template multiply<edge>(tile_view<T, 1, pair::p_row>{m.p()}, tile_view<T, pair::row, 1>{m.in.dy});
          dk.template multiply<edge>(tile_view<T, 1, pair::p_row>{m.ds()}, tile_view<T, pair::row, 1>{m.in.q});
          team.wait();
        }
      if (d.k) pair::write(team, m, dk, s.keys - first, s.width, [&](int r) { return d.key(b, h, first + r); });
      if (d.v) pair::write(team, m, dv, s.keys - first, s.width, [&](int r) { return d.value(b, h, first + r); });
    });
  }
};

}  // namespace detail

}  // namespace fusionllm::inline v0
