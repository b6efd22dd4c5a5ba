// SPDX-License-Identifier: Apache-2.0
// A question: compute one output of the model for these inputs. The broker asks the stages that the output needs, each
// gets the inputs that it reads; activations go from stage to stage as in training, but as they are; the stage of the
// output answers. Payloads are little-endian. In all these frames `step` is the question's number among those of its
// output, `micro_batch` the output's place in the list that the assignment gave.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "../core/bytes.hpp"
#include "../graph/cost.hpp"
#include "../transport/frame.hpp"
#include "forward_program.hpp"
#include "inference.hpp"

namespace fusionllm::inline v0 {

inline constexpr frame_kind question_kind{u16(frame_kind::custom) + 2};
inline constexpr frame_kind answer_kind{u16(frame_kind::custom) + 3};

/// An output that is asked for.
struct forward_output {
  int node = -1;
  inference_kind kind = inference_kind::whole;
  sizes bounds;   ///< of one question
  int window = 1; ///< questions that may be under way; 1 for a decoder, whose questions go on from each other
};

struct question {
  sizes run;
  i64 past = 0;             ///< times before these, which earlier questions computed (decoding)
  double loss_scale = 1;
  bool last_time = false;   ///< the answer is of each sequence's last time only

  static constexpr std::size_t bytes = 40;
  void encode(std::byte* p) const {
    store_little(p, u64(run.batch));
    store_little(p + 8, u64(run.time));
    store_little(p + 16, u64(past));
    store_little(p + 24, std::bit_cast<u64>(loss_scale));
    store_little(p + 32, u64(last_time));
  }
  /// Errors: protocol, for what is beyond `o`.
  static question decode(const_byte_span in, const graph_view& g, const forward_output& o) {
    if (in.size() < bytes) fail(errc::protocol, "a question has ", in.size(), " bytes, expected ", bytes, " or more");
    const u64 rows = load_little<u64>(in.data()), times = load_little<u64>(in.data() + 8), past = load_little<u64>(in.data() + 16);
    const u64 most = o.kind == inference_kind::decoding ? u64(o.bounds.time) : times, last = load_little<u64>(in.data() + 32);
    if (rows < 1 || rows > u64(o.bounds.batch) || times < 1 || times > u64(o.bounds.time) || past > most - (std::min)(times, most) || last > 1)
      fail(errc::protocol, "a question about ", rows, " rows of ", times, " times after ", past, ", expected at most ", o.bounds.batch, " of ",
           o.bounds.time, o.kind == inference_kind::decoding ? " in all" : " after none");
    question q;
    q.run = {i64(rows), i64(times)};
    q.past = i64(past);
    q.loss_scale = std::bit_cast<double>(load_little<u64>(in.data() + 24));
    q.last_time = last != 0;
    const extents& out = g.nodes[std::size_t(o.node)].out;
    if (q.last_time && (out.rank < 2 || out.d[0] != batch || out.d[1] != time))
      fail(errc::protocol, "a question about the last time of an output that has no times");
    return q;
  }
  /// The shape of the answer.
  extents answer_dims(const graph_view& g, int node) const {
    return g.nodes[std::size_t(node)].out.resolve(last_time ? sizes{run.batch, 1} : run);
  }
};

/// The peer that runs `stage` for a question: replicas take turns, but for a decoder, whose state is with the first.
inline int peer_for(const plan& p, const forward_output& o, int stage, u64 number) {
  const auto& replicas = p.peers[std::size_t(stage)];
  return replicas[o.kind == inference_kind::decoding ? 0 : std::size_t(number % replicas.size())];
}

/// The nodes that a stage computes for any of the outputs.
inline flags forward_nodes(const graph_view& g, const plan& p, std::span<const forward_output> outputs, int stage) {
  flags r(g.nodes.size(), u8(0));
  for (const forward_output& o : outputs) {
    const flags needed = slice(g, o.node);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = r[i] || (needed[i] && p.stage_of[i] == stage);
  }
  return r;
}

/// The model's inputs that a stage reads for an output, in the order of the nodes.
inline std::vector<int> inputs_of(const graph_view& g, const program& forward, int stage) {
  flags nodes(g.nodes.size(), u8(0));
  for (int t : forward.tasks_of_stage[std::size_t(stage)])
    for (int i : forward.tasks[std::size_t(t)].nodes) nodes[std::size_t(i)] = 1;
  return inputs_read_by(g, nodes);
}

/// Bytes that an input takes of a question: each begins where a multiple of 8 does.
inline u64 input_bytes(const graph_view& g, int input, const sizes& s, dtype real) {
  return (output_bytes(g, input, s, size_of(real)) + 7) / 8 * 8;
}
/// Bytes of a question with these inputs.
inline u64 question_bytes(const graph_view& g, std::span<const int> inputs, const sizes& s, dtype real) {
  u64 n = question::bytes;
  for (int i : inputs) n += input_bytes(g, i, s, real);
  return n;
}

}  // namespace fusionllm::inline v0
