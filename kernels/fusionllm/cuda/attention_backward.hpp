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
  static constexpr int edge = 2048 / W;  ///< queries, and keys, in a tile
  static constexpr int row = W + 1, p_row = edge + 1;

  attention_shape s;
  attention_heads<const T> x;
  const T* d_out;
  const float *saved, *dots;

  struct tiles {
    float q[edge * W], dy[edge * W], k[edge * row], v[edge * row];
    float lse[edge], dot[edge];
  };

  template <class Team>
  FL_HD void load_queries(const Team& team, tiles& m, i64 b, i64 h, i64 first) const {
    const i64 left = s.queries - first;
    load_tile<edge, W, W>(team, x.query(b, h, first), x.q_part.stride, left, s.width, m.q);
    load_tile<edge, W, W>(team, d_out + s.output_at(b, h, first), s.features, left, s.width, m.dy);
    each_member(team, edge, [&](i64 r) {
      m.lse[r] = r < left ? saved[s.row_at(b, h, first + r)] : 0.0f;
      m.dot[r] = r < left ? dots[s.row_at(b, h, first + r)] : 0.0f;
    });
  }
  template <class Team>
  FL_HD void load_keys(const Team& team, tiles& m, i64 b, i64 h, i64 first) const {
    load_tile<edge, W, row>(team, x.key(b, h, first), x.k_part.stride, s.keys - first, s.width, m.k);
    load_tile<edge, W, row>(team, x.value(b, h, first), x.v_part.stride, s.keys - first, s.width, m.v);
  }
  /// f(query, key, probability, cotangent of the score before it was scaled), in the tiles from queries and keys on.
  template <class Team, class F>
  FL_HD void each_score(const Team& team, const tiles& m, i64 queries, i64 keys, F&& f) const {
    tile_part<edge, edge, Team::size> score(team.rank), dp(team.rank);
    score.template multiply<W>(tile_view<W, 1>{m.q}, tile_view<1, row>{m.k});
    dp.template multiply<W>(tile_view<W, 1>{m.dy}, tile_view<1, row>{m.v});
    for (int i = 0; i < score.rows; ++i)
      for (int j = 0; j < score.columns; ++j) {
        const int r = score.row(i), c = score.column(j);
        if (r >= edge || c >= edge) continue;
        const bool seen = keys + c <= queries + r && queries + r < s.queries;
        const float p = seen ? std::exp(score.v[i][j] * s.scale - m.lse[r]) : 0.0f;
        f(r, c, p, p * (dp.v[i][j] - m.dot[r]) * s.scale);
      }
  }
};

template <class T, int W>
struct attention_query_cotangent {
  using pair = attention_pair<T, W>;
  static constexpr int edge = pair::edge;
  pair of;
  attention_heads<T> d;

  template <class Team>
  struct shared {
    typename pair::tiles tiles;
    float ds[edge * pair::p_row];
  };
  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    const auto& s = of.s;
    const i64 tiles = (s.queries + edge - 1) / edge, heads = s.sequences * s.heads;
    each_row(team, tiles * heads, [&](i64 item) {
      const i64 first = (tiles - 1 - item / heads) * edge, b = item % heads / s.heads, h = item % heads % s.heads;
      of.load_queries(team, m.tiles, b, h, first);
      tile_part<edge, W, Team::size> dq(team.rank);
      for (i64 key = 0; key <= first; key += edge) {
        of.load_keys(team, m.tiles, b, h / s.group, key);
        team.wait();
        of.each_score(team, m.tiles, first, key,
                      [&](int r, int c, float, float ds) { m.ds[r * pair::p_row + c] = ds; });
        team.wait();
        dq.template multiply<edge>(tile_view<pair::p_row, 1>{m.ds}, tile_view<pair::row, 1>{m.tiles.k});
        team.wait();
      }
      dq.each([&](int r, int c, float v) {
        if (first + r < s.queries && c < s.width) d.query(b, h, first + r)[c] = T(v);
      });
    });
  }
};

template <class T, int W>
struct attention_key_cotangent {
  using pair = attention_pair<T, W>;
  static constexpr int edge = pair::edge;
  pair of;
  attention_heads<T> d;

  template <class Team>
  struct shared {
    typename pair::tiles tiles;
    float p[edge * pair::p_row], ds[edge * pair::p_row];
  };
  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    const auto& s = of.s;
    const i64 tiles = (s.keys + edge - 1) / edge, heads = s.sequences * s.kv_heads;
    each_row(team, tiles * heads, [&](i64 item) {  // early keys, which most queries read, first
      const i64 first = item / heads * edge, b = item % heads / s.kv_heads, h = item % heads % s.kv_heads;
      of.load_keys(team, m.tiles, b, h, first);
      tile_part<edge, W, Team::size> dk(team.rank), dv(team.rank);
      for (i64 head = h * s.group; head < (h + 1) * s.group; ++head)
        for (i64 query = first; query < s.queries; query += edge) {
          of.load_queries(team, m.tiles, b, head, query);
          team.wait();
          of.each_score(team, m.tiles, query, first, [&](int r, int c, float p, float ds) {
            m.p[r * pair::p_row + c] = p;
            m.ds[r * pair::p_row + c] = ds;
          });
          team.wait();
          dv.template multiply<edge>(tile_view<1, pair::p_row>{m.p}, tile_view<W, 1>{m.tiles.dy});
          dk.template multiply<edge>(tile_view<1, pair::p_row>{m.ds}, tile_view<W, 1>{m.tiles.q});
          team.wait();
        }
      const auto store = [&](auto& part, auto place) {
        part.each([&](int r, int c, float v) {
          if (first + r < s.keys && c < s.width) place(first + r)[c] = T(v);
        });
      };
      if (d.k) store(dk, [&](i64 t) { return d.key(b, h, t); });
      if (d.v) store(dv, [&](i64 t) { return d.value(b, h, t); });
    });
  }
};

}  // namespace detail

}  // namespace fusionllm::inline v0
