// SPDX-License-Identifier: Apache-2.0
// What broker and peers say to each other. A control frame carries the kind in `edge`; parts of a run's state (weights,
// optimizer) are bulk frames with the parameter in `edge` and which part in `micro_batch`.
//
//   peer                                   broker
//   joining (name, rank, address) ------->                 gathers all ranks
//            <--------------------------- roster            who is where; how to pace, in emulation
//   connected --------------------------->                  every peer has reached every other
//            <--------------------------- measure           one peer after the other
//   measured ---------------------------->                  plans
//            <--------------------------- assignment        the plan, and how long to hold tasks, in emulation
//            <--------------------------- state, restored   when the run resumes
//   ready ------------------------------->
//                                                          when questions are to be answered (runtime/question.hpp):
//            <--------------------------- assignment        with the outputs; weights and restored follow, then ready
//            <--------------------------- question          to each peer that takes part; activations go between peers
//   answer ------------------------------>                  from the peer that has the output
//                                                          else:
//            <--------------------------- grant(until)      steps below `until` may run
//   report (each step) ------------------>
//            <--------------------------- collect           at a step where all have stopped; state comes back
//   stop, when its user asks ------------>                 as at the broker: the granted steps end, the state is saved
//            <--------------------------- finish
//   either side: failed(code, text), then the end
#pragma once

#include <string>
#include <vector>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

enum class control_kind : u32 {
  joining = 1, roster, connected, measure, measured, assignment, restored, ready, grant, report, collect, finish, failed,
  probe, probe_answer, stop
};

struct joining {
  std::string device;
  u64 memory_bytes = 0;
  u32 threads = 1;
  u32 real = 0;              ///< the dtype of its activations
  std::string arithmetic{};  ///< what the bits of its results depend on beside the device (binding.hpp)
  template <class V>
  void fields(V& v) { v(device, memory_bytes, threads, real, arithmetic); }
};

struct roster_member {
  u32 rank = 0;
  std::string name, address;
  template <class V>
  void fields(V& v) { v(rank, name, address); }
};
struct pace_of_link {
  u32 from = 0, to = 0;
  u64 bits_per_second = 0;
  i64 latency = 0;
  template <class V>
  void fields(V& v) { v(from, to, bits_per_second, latency); }
};
struct roster {
  std::vector<roster_member> members;
  std::vector<pace_of_link> paces;
  template <class V>
  void fields(V& v) { v(members, paces); }
};

struct nothing {
  template <class V>
  void fields(V&) {}
};

struct sample_message {
  std::string kind;
  u32 backward = 0;
  u64 flops = 0, bytes = 0;
  i64 took = 0;
  template <class V>
  void fields(V& v) { v(kind, backward, flops, bytes, took); }
};
struct probe_message {
  u32 to = 0;
  u64 bytes = 0;
  i64 took = 0;
  template <class V>
  void fields(V& v) { v(to, bytes, took); }
};
struct measured {
  std::vector<sample_message> samples;
  std::vector<probe_message> probes;
  template <class V>
  void fields(V& v) { v(samples, probes); }
};

struct stage_message {
  std::vector<u32> peers;
  template <class V>
  void fields(V& v) { v(peers); }
};
struct codec_message {
  u32 from = 0, to = 0;
  std::string codec;
  double ratio = 1;
  template <class V>
  void fields(V& v) { v(from, to, codec, ratio); }
};
struct output_message {
  u32 node = 0, decoding = 0, window = 1;
  u64 batch = 0, time = 0;  ///< of one question, at most
  std::vector<i64> holds;   ///< by task of the output's forward program, as those of an assignment
  template <class V>
  void fields(V& v) { v(node, decoding, window, batch, time, holds); }
};
struct assignment {
  u32 epoch = 0;
  std::vector<u32> stage_of;
  std::vector<stage_message> stages;
  u32 micro_batches = 1, groups = 1, schedule = 0;
  std::vector<codec_message> codecs;
  std::vector<i64> holds;  ///< by task of the program: how long an emulated device takes; empty: no emulation
  i64 update_hold = 0;
  u32 resumes = 0;         ///< state and `restored` follow
  u32 recompute = 0;
  std::vector<double> history;  ///< of losses (runtime/skipping.hpp), when the run resumes
  std::vector<output_message> outputs;  ///< questions about these are to be answered, and no steps to be run
  template <class V>
  void fields(V& v) { v(epoch, stage_of, stages, micro_batches, groups, schedule, codecs, holds, update_hold, resumes, recompute, history, outputs); }
};

struct step_number {
  u64 step = 0;
  template <class V>
  void fields(V& v) { v(step); }
};

struct traffic_message {
  u32 to = 0;
  u64 messages = 0, raw = 0, encoded = 0, wire = 0;
  i64 busy = 0;
  template <class V>
  void fields(V& v) { v(to, messages, raw, encoded, wire, busy); }
};
struct report {
  u64 step = 0;
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  u32 skipped = 0;         ///< why (skip_reason); 0: it was not
  double mean_loss = 0;    ///< of the steps before a spike
  u32 kind = 0, micro_batch = 0, node = 0, parameter = 0, peer = 0;  ///< of the fault of a step that was not finite
  i64 elapsed = 0, computed = 0;
  std::vector<traffic_message> traffic;  ///< since the run began
  template <class V>
  void fields(V& v) { v(step, loss, gradient_norm, learning_rate, skipped, mean_loss, kind, micro_batch, node, parameter, peer, elapsed, computed, traffic); }
};

struct failure {
  u32 code = 1;
  std::string text;
  template <class V>
  void fields(V& v) { v(code, text); }
};

}  // namespace fusionllm::inline v0
