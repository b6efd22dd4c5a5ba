// SPDX-License-Identifier: Apache-2.0
// The side that asks: it cuts a question into what each stage's peer must know, and puts answers in the order of the
// questions. It neither waits nor sends; memory is bounded by the outputs' windows.
#pragma once

#include <deque>

#include "question.hpp"

namespace fusionllm::inline v0 {

class forward_asker {
 public:
  /// Errors: model.
  forward_asker(const graph_view& g, const plan& p, std::vector<forward_output> outputs, dtype real) : g_(g), plan_(p), real_(real) {
    for (forward_output& o : outputs) {
      program f = forward_program(g_, plan_, o.node);
      outputs_.push_back({o, std::move(f), 0, {}});
    }
  }

  int window(int output) const { return outputs_[std::size_t(output)].what.window; }
  const forward_output& what(int output) const { return outputs_[std::size_t(output)].what; }
  /// Questions about an output without an answer that was taken.
  std::size_t under_way(int output) const { return outputs_[std::size_t(output)].asked.size(); }

  /// Asks, where fewer than `window` are under way: send(peer, header, payload) for each peer that takes part. `inputs` by
  /// node, those that the output needs. Errors: internal.
  template <class Send>
  void ask(int output, const question& q, std::span<const void* const> inputs, Send&& send) {
    one& o = outputs_[std::size_t(output)];
    if (int(o.asked.size()) >= o.what.window) fail(errc::internal, "a question more than the ", o.what.window, " that may be under way");
    const u64 number = o.next++;
    o.asked.push_back({number, q, {}, false});
    for (int s = 0; s < plan_.stages(); ++s) {
      if (o.forward.tasks_of_stage[std::size_t(s)].empty()) continue;
      const int to = peer_for(plan_, o.what, s, number);
      frame_header h;
      h.kind = question_kind;
      h.step = number;
      h.micro_batch = u32(output);
      h.destination = u32(to);
      send(to, h, payload(q, inputs, inputs_of(g_, o.forward, s)));
    }
  }

  /// Memory for an answer that begins to arrive. Errors: protocol, for what was not asked of `from`.
  byte_span place(int from, const frame_header& h) {
    pending& p = expected(from, h);
    if (!p.bytes.empty()) fail(errc::protocol, "the answer to question ", h.step, " comes twice");
    p.bytes.resize(std::size_t(h.total_length));
    return p.bytes;
  }
  /// It is whole. Errors: protocol.
  void deliver(int from, const frame_header& h, const_byte_span payload) {
    pending& p = expected(from, h);
    if (p.whole) fail(errc::protocol, "the answer to question ", h.step, " comes twice");
    if (payload.data() != p.bytes.data()) p.bytes.assign(payload.begin(), payload.end());
    p.whole = true;
  }

  /// Whether the oldest question about an output has its answer.
  bool answered(int output) const {
    const auto& asked = outputs_[std::size_t(output)].asked;
    return !asked.empty() && asked.front().whole;
  }
  /// That answer, in `memory`.
  tensor_ref take(int output, std::vector<std::byte>& memory) {
    one& o = outputs_[std::size_t(output)];
    memory = std::move(o.asked.front().bytes);
    const extents dims = o.asked.front().what.answer_dims(g_, o.what.node);
    o.asked.pop_front();
    return {memory.data(), dims, type_of(o.what.node)};
  }
  /// The peer that owes the oldest answer, -1 if none does.
  int owing() const {
    for (const one& o : outputs_)
      for (const pending& p : o.asked)
        if (!p.whole) return peer_for(plan_, o.what, plan_.stage_of[std::size_t(o.what.node)], p.number);
    return -1;
  }

 private:
  struct pending {
    u64 number;
    question what;
    std::vector<std::byte> bytes;
    bool whole;
  };
  struct one {
    forward_output what;
    program forward;
    u64 next;
    std::deque<pending> asked;  ///< oldest first
  };

  dtype type_of(int node) const { return fusionllm::type_of(g_, node, real_); }

  std::vector<std::byte> payload(const question& q, std::span<const void* const> inputs, const std::vector<int>& of) const {
    std::vector<std::byte> r(std::size_t(question_bytes(g_, of, q.run, real_)));
    q.encode(r.data());
    std::byte* to = r.data() + question::bytes;
    for (int i : of) {
      const u64 n = output_bytes(g_, i, q.run, size_of(real_));
      if (!inputs[std::size_t(i)]) fail(errc::internal, "a question without the input '", g_.nodes[std::size_t(i)].scope.view(), "'");
      std::memcpy(to, inputs[std::size_t(i)], std::size_t(n));
      to += input_bytes(g_, i, q.run, real_);
    }
    return r;
  }

  pending& expected(int from, const frame_header& h) {
    if (h.kind == answer_kind && h.micro_batch < outputs_.size() && h.edge == 0) {
      one& o = outputs_[h.micro_batch];
      for (pending& p : o.asked) {
        if (p.number != h.step || p.whole || from != peer_for(plan_, o.what, plan_.stage_of[std::size_t(o.what.node)], p.number)) continue;
        const u64 bytes = u64(p.what.answer_dims(g_, o.what.node).count()) * size_of(type_of(o.what.node));
        if (h.total_length != bytes) fail(errc::protocol, "the answer to question ", h.step, " has ", h.total_length, " bytes, expected ", bytes);
        return p;
      }
    }
    fail(errc::protocol, "peer ", from, " answers question ", h.step, " about output ", h.micro_batch, ", which it was not asked");
  }

  graph_view g_;
  plan plan_;
  dtype real_;
  std::vector<one> outputs_;
};

}  // namespace fusionllm::inline v0
