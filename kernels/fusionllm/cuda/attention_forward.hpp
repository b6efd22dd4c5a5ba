// SPDX-License-Identifier: Apache-2.0
// Causal attention forward: a team has a tile of queries of one head, and goes through the keys and values tile after
// tile with a running maximum (after Dao et al., arXiv 2205.14135). Nothing of size time x time is ever written.
#pragma once

#include <limits>

#include "attention_heads.hpp"
#include "tile.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T, int W>
struct attention_forward {
  static constexpr int queries = 4096 / W, keys = 2048 / W;
  static constexpr int key_row = W + 1, p_row = keys + 1;  // odd, so that members read different banks

  attention_shape s;
  attention_heads<const T> x;
  T* out;
  float* saved;  ///< null: not wanted; else the log-sum-exp of every row

  template <class Team>
  struct shared {
    float q[queries * W], k[keys * key_row], v[keys * W], p[queries * p_row];
    float largest[queries], shrink[queries];
  };

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& m) const {
    const i64 tiles = (s.queries + queries - 1) / queries, heads = s.sequences * s.heads;
    each_row(team, tiles * heads, [&](i64 item) {  // late queries, which read most keys, first
      const i64 head = item % heads;
      tile(team, m, (tiles - 1 - item / heads) * queries, head / s.heads, head % s.heads);
    });
  }

 private:
  template <class Team>
  FL_HD void tile(const Team& team, shared<Team>& m, i64 first, i64 b, i64 h) const {
    const i64 count = s.queries - first < queries ? s.queries - first : queries;
    load_tile<queries, W, W>(team, x.query(b, h, first), x.q_part.stride, count, s.width, m.q);
    each_member(team, queries, [&](i64 r) { m.largest[r] = std::numeric_limits<float>::lowest(); });
    tile_part<queries, W, Team::size> o(team.rank);
    float sum[decltype(o)::rows] = {};
    for (i64 key = 0; key < s.offset + first + count; key += keys) {
      load_tile<keys, W, key_row>(team, x.key(b, h / s.group, key), x.k_part.stride, s.keys - key, s.width, m.k);
      load_tile<keys, W, W>(team, x.value(b, h / s.group, key), x.v_part.stride, s.keys - key, s.width, m.v);
      team.wait();
      probabilities(team, m, s.offset + first - key);
      for (int i = 0; i < o.rows; ++i) {
        const int r = o.row(i);
        sum[i] *= m.shrink[r];
        for (int j = 0; j < o.columns; ++j) o.v[i][j] *= m.shrink[r];
        for (int c = 0; c < keys; ++c) sum[i] += m.p[r * p_row + c];
      }
      o.template multiply<keys>(tile_view<p_row, 1>{m.p}, tile_view<W, 1>{m.v});
      team.wait();
    }
    store(o, sum, m.largest, first, count, b, h);
    team.wait();
  }

  /// m.p = exp(score - largest so far), m.shrink: what earlier sums are multiplied by. Query r sees key c if c <= r + ahead.
  template <class Team>
  FL_HD void probabilities(const Team& team, shared<Team>& m, i64 ahead) const {
    tile_part<queries, keys, Team::size> score(team.rank);
    score.template multiply<W>(tile_view<W, 1>{m.q}, tile_view<1, key_row>{m.k});
    score.each([&](int r, int c, float& v) {
      v = c <= r + ahead ? v * s.scale : -std::numeric_limits<float>::infinity();
      m.p[r * p_row + c] = v;
    });
    team.wait();
    each_member(team, queries, [&](i64 r) {
      const float before = m.largest[r];
      float largest = before;
      for (int c = 0; c < keys; ++c) largest = m.p[r * p_row + c] > largest ? m.p[r * p_row + c] : largest;
      m.largest[r] = largest;
      m.shrink[r] = std::exp(before - largest);
    });
    team.wait();
    score.each([&](int r, int c, float& v) { m.p[r * p_row + c] = std::exp(v - m.largest[r]); });
    team.wait();
  }

  template <class Part>
  FL_HD void store(Part& o, const float* sum, const float* largest, i64 first, i64 count, i64 b, i64 h) const {
    for (int i = 0; i < o.rows; ++i) {
      const int r = o.row(i);
      if (r >= count) continue;
      T* to = out + s.output_at(b, h, first + r);
      for (int j = 0; j < o.columns; ++j)
        if (o.column(j) < s.width) to[o.column(j)] = T(o.v[i][j] / sum[i]);
      if (saved && o.column(0) == 0) saved[s.row_at(b, h, first + r)] = largest[r] + std::log(sum[i]);
    }
  }
};

/// In decoding: the keys and values of these times are added to the state.
template <class T>
struct attention_remember {
  attention_shape s;
  attention_heads<const T> x;  ///< of these times
  T* state;
  attention_part k, v;  ///< in the state

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    const i64 row = s.kv_heads * s.width;
    each_row(team, s.sequences * s.queries, [&](i64 r) {
      const i64 b = r / s.queries, t = r % s.queries;
      const T *key = x.key(b, 0, t), *value = x.value(b, 0, t);
      T* to = state + b * k.sequence + (s.offset + t) * row;
      each_member(team, row, [&](i64 i) {
        to[i] = key[i];
        to[v.start + i] = value[i];
      });
    });
  }
};

}  // namespace detail

}  // namespace fusionllm::inline v0
