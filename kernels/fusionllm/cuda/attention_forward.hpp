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
  static constexpr bool many_registers = true;
  static constexpr int queries = attention_tiles<T, W>::queries, keys = attention_tiles<T, W>::keys;
  static constexpr int row = tile_row<T>(W), s_row = sum_row(keys);
  /// Probabilities lie where their scores did, row on row.
  static constexpr int p_row = s_row * int(sizeof(float) / sizeof(T));

  attention_shape s;
  attention_heads<const T> x;
  T* out;
  float* saved;  ///< null: not wanted; else the log-sum-exp of every row

  /// Members of one row, of a team of `size`, and rows that a team has at a time.
  template <u32 Size>
  struct row_grid {
    static constexpr int lanes = Size > queries ? int(Size) / queries : 1, at_once = int(Size) / lanes;
    static constexpr int rows = queries / at_once, columns = (keys + lanes - 1) / lanes;
  };

  template <class Team>
  struct shared {
    struct tiles {
      alignas(32) tile_element<T> q[queries * row];
      alignas(32) tile_element<T> k[keys * row];
      alignas(32) tile_element<T> v[keys * row];
      alignas(32) float s[queries * s_row];
    };
    union {
      tiles in;
      alignas(32) float out[queries * sum_row(W)];
      alignas(32) float scratch[256];
    };
    float largest[queries], shrink[queries], sum[queries], part[queries * row_grid<Team::size>::lanes];
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
    matrix_part<T, queries, W, Team> o(team);
    o.find_rows(team, m.scratch);
    load_tile<queries, W>(team, x.query(b, h, first), x.q_part.stride, count, s.width, m.in.q);
    each_member(team, queries, [&](i64 r) {
      m.largest[r] = std::numeric_limits<float>::lowest();
      m.sum[r] = 0;
    });
    for (i64 key = 0; key < s.offset + first + count; key += keys) {
      load_tile<keys, W>(team, x.key(b, h / s.group, key), x.k_part.stride, s.keys - key, s.width, m.in.k);
      load_tile<keys, W>(team, x.value(b, h / s.group, key), x.v_part.stride, s.keys - key, s.width, m.in.v);
      team.wait();
      scores(team, m);
      probabilities(team, m, s.offset + first - key);
      o.scale_rows(m.shrink);
      o.template multiply<keys>(tile_view<T, p_row, 1>{p_of(m)}, tile_view<T, row, 1>{m.in.v});
      team.wait();
    }
    o.template store<sum_row(W)>(m.out);
    team.wait();
    write_tile<queries, W>(team, m.out, count, s.width, [&](int r) { return out + s.output_at(b, h, first + r); },
                           [&](int r) { return 1.0f / m.sum[r]; });
    if (saved)
      each_member(team, count, [&](i64 r) { saved[s.row_at(b, h, first + r)] = m.largest[r] + std::log(m.sum[r]); });
    team.wait();
  }

  template <class Memory>
  FL_HD static tile_element<T>* p_of(Memory& m) {
    return reinterpret_cast<tile_element<T>*>(m.in.s);
  }

  template <class Team>
  FL_HD void scores(const Team& team, shared<Team>& m) const {
    matrix_part<T, queries, keys, Team> score(team);
    score.template multiply<W>(tile_view<T, row, 1>{m.in.q}, tile_view<T, 1, row>{m.in.k});
    score.template store<s_row>(m.in.s);
    team.wait();
  }

  /// Probabilities = exp(score - largest so far); m.shrink: what earlier sums are multiplied by. Query r sees key c if
  /// c <= r + ahead.
  template <class Team>
  FL_HD void probabilities(const Team& team, shared<Team>& m, i64 ahead) const {
    using grid = row_grid<Team::size>;
    const int lane = int(team.rank) % grid::lanes, r0 = int(team.rank) / grid::lanes;
    float v[grid::rows][grid::columns], sum[grid::rows] = {}, largest[grid::rows], shrink[grid::rows];
    for (int i = 0; i < grid::rows; ++i) {
      const int r = r0 + i * grid::at_once;
      float most = std::numeric_limits<float>::lowest();
      for (int j = 0; j < grid::columns; ++j) {
        const int c = lane + j * grid::lanes;
        v[i][j] = c < keys && c <= r + ahead ? m.in.s[r * s_row + c] * s.scale : -std::numeric_limits<float>::infinity();
        most = v[i][j] > most ? v[i][j] : most;
      }
      m.part[r * grid::lanes + lane] = most;
    }
    team.wait();
    for (int i = 0; i < grid::rows; ++i) {
      const int r = r0 + i * grid::at_once;
      largest[i] = m.largest[r];
      for (int l = 0; l < grid::lanes; ++l)
        largest[i] = m.part[r * grid::lanes + l] > largest[i] ? m.part[r * grid::lanes + l] : largest[i];
      shrink[i] = std::exp(m.largest[r] - largest[i]);
      for (int j = 0; j < grid::columns; ++j) {
        const int c = lane + j * grid::lanes;
        const float p = std::exp(v[i][j] - largest[i]);
        if (c < keys) p_of(m)[r * p_row + c] = to_tile<T>(p);
        sum[i] += p;
      }
    }
    team.wait();
    for (int i = 0; i < grid::rows; ++i) {
      const int r = r0 + i * grid::at_once;
      m.part[r * grid::lanes + lane] = sum[i];
      if (lane != 0) continue;
      m.largest[r] = largest[i];
      m.shrink[r] = shrink[i];
    }
    team.wait();
    each_member(team, queries, [&](i64 r) {
      float total = 0;
      for (int l = 0; l < grid::lanes; ++l) total += m.part[r * grid::lanes + l];
      m.sum[r] = m.sum[r] * m.shrink[r] + total;
    });
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
