// SPDX-License-Identifier: Apache-2.0
// Rows of a table by token. The gradient needs no atomics: the team of a token's first position adds all its positions,
// in ascending order, so that the bits are those of plain loops.
#pragma once

#include <fusionllm/ops/embedding.hpp>

#include "team_kernel.hpp"

namespace fusionllm::inline v0 {

namespace detail {

template <class T>
struct embedding_forward {
  const std::int32_t* token;
  const float* table;
  T* out;
  i64 tokens, features;

  template <class Team>
  FL_HD void operator()(const Team& team) const {
    each_row(team, tokens, [&](i64 r) {
      const float* from = table + i64(token[r]) * features;
      T* to = out + r * features;
      each_member(team, features, [&](i64 f) { to[f] = T(from[f]); });
    });
  }
};

template <class T>
struct embedding_gradient {
  const std::int32_t* token;
  const T* d_out;
  float* d_table;
  i64 tokens, features;

  template <class Team>
  struct shared {
    u32 same[Team::size];  ///< positions of the token within a stretch of `size` positions
  };

  template <class Team>
  FL_HD void operator()(const Team& team, shared<Team>& s) const {
    each_row(team, tokens, [&](i64 first) {
      if (!seen_before(team, first)) add_all(team, first, s);
    });
  }

 private:
  // Looks backwards from the position: a frequent token is soon found.
  template <class Team>
  FL_HD bool seen_before(const Team& team, i64 first) const {
    for (i64 end = first; end > 0; end -= Team::size) {
      const i64 i = end - 1 - team.rank;
      if (team.any(i >= 0 && token[i] == token[first])) return true;
    }
    return false;
  }
  template <class Team>
  FL_HD void add_all(const Team& team, i64 first, shared<Team>& s) const {
    float* to = d_table + i64(token[first]) * features;
    for (i64 begin = first; begin < tokens; begin += Team::size) {
      const i64 i = begin + team.rank;
      const bool mine = i < tokens && token[i] == token[first];
      u64 count = 0;
      const u64 at = team.sum_before(mine, count);
      if (mine) s.same[at] = u32(i - first);
      team.wait();
      if (count > 0)
        each_member(team, features, [&](i64 f) {
          float sum = to[f];
          for (u64 k = 0; k < count; ++k) sum += float(d_out[(first + i64(s.same[k])) * features + f]);
          to[f] = sum;
        });
      team.wait();
    }
  }
};

}  // namespace detail

template <class T, class Launch>
struct team_kernel<embedding_op, T, Launch> {
  /// tokens (batch, time), table (rows, features) -> (batch, time, features)
  static void forward(typename Launch::context& c, const kernel_args& a) {
    const i64 tokens = a.in[0].count(), features = a.out.dims.last();
    Launch::rows(c, tokens, features,
                 detail::embedding_forward<T>{a.in[0].as<const std::int32_t>(), a.param[0].as<const float>(),
                                              a.out.template as<T>(), tokens, features},
                 "launch an embedding");
  }
  static void backward_weight(typename Launch::context& c, const kernel_args& a) {
    if (!a.d_param[0]) return;
    const i64 tokens = a.in[0].count();
    Launch::blocks(c, tokens,
                   detail::embedding_gradient<T>{a.in[0].as<const std::int32_t>(), a.d_out.template as<const T>(),
                                                 a.d_param[0].as<float>(), tokens, a.d_out.dims.last()},
                   "launch the gradient of an embedding");
  }
};

}  // namespace fusionllm::inline v0
