// SPDX-License-Identifier: Apache-2.0
// One peer's part in answering questions (runtime/question.hpp): a state machine that takes messages in, submits parts
// of its stage's share to the device, and sends messages out. It lives on a reactor and never computes or waits there. A
// question waits in a slot of its own memory until all that the next part reads has come; older ones go first.
#pragma once

#include <sstream>

#include "buffer_pool.hpp"
#include "device_queue.hpp"
#include "forward_weights.hpp"
#include "index_check.hpp"
#include "question.hpp"

namespace fusionllm::inline v0 {

/// What a forward stage needs of the world.
class forward_host {
 public:
  virtual ~forward_host() = default;
  /// Sends a message to a peer, or to the broker (-1); `payload` stays until sent(tag) is called on the stage.
  virtual void send_forward(int to, const frame_header& h, const_byte_span payload, u64 tag) = 0;
  virtual void on_failure(const error& e) = 0;
};

struct forward_options {
  int self = 0;
  std::vector<forward_output> outputs;
  /// Emulation: by output, then task of its program, how long a full question takes; empty: none.
  std::vector<std::vector<nanoseconds>> holds;
  std::vector<std::string> names;  ///< of peers, for errors; empty: their numbers
  u32 epoch = 0;
};

class forward_stage {
 public:
  static constexpr int broker = -1;

  /// Of a peer that has a stage. Errors: model, resource.
  forward_stage(const graph_view& g, const plan& p, const device_binding& device, forward_options o, device_queue& queue, forward_host& host)
      : g_(g), plan_(p), device_(device), options_(std::move(o)), queue_(queue), host_(host), stage_(plan_.stage_of_peer(options_.self)),
        weights_(g_, forward_nodes(g_, plan_, options_.outputs, stage_), weights_beside(device.real), device.context->memory()) {
    for (const forward_output& what : options_.outputs) {
      one x{what, forward_program(g_, plan_, what.node), {}, {}, 0};
      x.inputs = inputs_of(g_, x.forward, stage_);
      x.most_bytes = question_bytes(g_, x.inputs, what.bounds, device_.real);
      for (int w = 0; w < what.window && takes_part(x); ++w) {
        x.slots.emplace_back();
        x.slots.back().arrived.assign(x.forward.edges.size(), -1);
        x.slots.back().inputs.assign(g_.nodes.size(), nullptr);
        x.slots.back().compute = std::make_unique<inference>(g_, share_of(x.forward, stage_, what.node), device_, what.bounds,
                                                             [this](int parameter) -> void* { return weights_.on_device(parameter); }, what.kind);
      }
      outputs_.push_back(std::move(x));
    }
  }
  ~forward_stage() { queue_.drain(); }
  forward_stage(const forward_stage&) = delete;
  forward_stage& operator=(const forward_stage&) = delete;

  /// Those that this stage reads for the outputs; to be filled before the first question.
  forward_weights& weights() { return weights_; }

  /// Memory for a message that begins to arrive from `from`. Errors: protocol, for what this peer cannot expect now;
  /// nothing is allocated then.
  byte_span place(int from, const frame_header& h) {
    check(from, h);
    for (const placed& p : placed_)
      if (p.header.kind == h.kind && p.header.step == h.step && p.header.micro_batch == h.micro_batch && p.header.edge == h.edge) came_twice(from, h);
    const int b = buffers_.take(std::size_t(h.total_length));
    buffers_[b].resize(std::size_t(h.total_length));
    placed_.push_back({h, b});
    return buffers_[b];
  }
  /// A whole message is in the memory that place() gave, or elsewhere: then it is copied. Errors: protocol, model.
  void deliver(int from, const frame_header& h, const_byte_span payload) {
    slot& s = check(from, h);
    int b = -1;
    for (std::size_t i = 0; i < placed_.size() && b < 0; ++i)
      if (buffers_[placed_[i].buffer].data() == payload.data()) {
        b = placed_[i].buffer;
        placed_.erase(placed_.begin() + std::ptrdiff_t(i));
      }
    if (b < 0) {
      b = buffers_.take(payload.size());
      buffers_[b].assign(payload.begin(), payload.end());
    }
    if (!s.active) begin(s, h.step);
    ++progress_;
    if (h.kind == question_kind) asked(outputs_[h.micro_batch], s, b);
    else s.arrived[h.edge] = b;
    pump();
  }
  void sent(u64 tag) { buffers_.give_back(int(tag)); }

  bool idle() const {
    for (const one& o : outputs_)
      for (const slot& s : o.slots)
        if (s.active) return false;
    return true;
  }
  bool busy() const { return working_; }
  /// Grows with everything that happens.
  u64 progress() const { return progress_; }
  /// Whom this peer waits for, and for what; empty while it works or is idle.
  std::string waiting_for() const {
    if (working_) return "";
    for (const one& o : outputs_)
      for (const slot& s : o.slots) {
        if (!s.active) continue;
        std::ostringstream text;
        if (!s.asked) text << "the broker for question " << s.number << " about ";
        else if (const int e = missing(o, s); e >= 0) {
          const edge& x = o.forward.edges[std::size_t(e)];
          text << title(peer_for(plan_, o.what, x.from, s.number)) << " for the activation of node " << x.node << " ("
               << g_.nodes[std::size_t(x.node)].scope.view() << ' ' << g_.nodes[std::size_t(x.node)].op->name << ") in question " << s.number << " about ";
        } else continue;
        text << "node " << o.what.node << " (" << g_.nodes[std::size_t(o.what.node)].op->name << ')';
        return std::move(text).str();
      }
    return "";
  }

 private:
  struct slot {
    u64 number = 0;
    bool used = false, active = false, asked = false;
    question what;
    int question_buffer = -1;
    std::size_t next = 0;              ///< part of the share
    std::vector<int> arrived;          ///< by edge: its buffer; -1: not yet
    std::vector<const void*> inputs;   ///< by node
    std::unique_ptr<inference> compute;
  };
  struct one {
    forward_output what;
    program forward;
    std::vector<int> inputs;
    std::vector<slot> slots;
    u64 most_bytes;  ///< of a question
  };
  struct placed {
    frame_header header;
    int buffer;
  };

  std::string title(int peer) const {
    if (peer == broker) return "the broker";
    return std::size_t(peer) < options_.names.size() ? options_.names[std::size_t(peer)] : "peer " + std::to_string(peer);
  }
  bool takes_part(const one& o) const { return !o.forward.tasks_of_stage[std::size_t(stage_)].empty(); }

  // --- messages
  /// The slot that a message is for. Errors: protocol.
  slot& check(int from, const frame_header& h) {
    const auto refuse = [&](const auto&... why) { fail(errc::protocol, title(from), " sends ", why...); };
    if (h.kind != question_kind && h.kind != frame_kind::activation) refuse("a message of kind ", int(h.kind), ", expected questions and activations");
    if (h.epoch != options_.epoch) refuse("what is of plan ", h.epoch, ", expected ", options_.epoch);
    if (h.micro_batch >= outputs_.size()) refuse("output ", h.micro_batch, " of ", outputs_.size());
    one& o = outputs_[h.micro_batch];
    if (o.slots.empty() || peer_for(plan_, o.what, stage_, h.step) != options_.self)
      refuse("question ", h.step, " about output ", h.micro_batch, ", in which this peer has no part");
    slot& s = o.slots[std::size_t(h.step % o.slots.size())];
    if (s.active ? s.number != h.step : s.used && h.step <= s.number)
      refuse("question ", h.step, ", this peer is at question ", s.number, " and takes ", o.slots.size(), " at a time");
    u64 least = 0, most = 0;
    if (h.kind == question_kind) {
      if (from != broker || h.edge) refuse("a question, which only the broker asks");
      if (s.active && s.asked) came_twice(from, h);
      least = question_bytes(g_, o.inputs, {1, 1}, device_.real);
      most = o.most_bytes;
    } else {
      if (h.edge >= o.forward.edges.size()) refuse("edge ", h.edge, " of ", o.forward.edges.size());
      const edge& e = o.forward.edges[h.edge];
      if (e.to != stage_ || from != peer_for(plan_, o.what, e.from, h.step) || h.codec != 0)
        refuse("edge ", h.edge, " by codec ", h.codec, ", which this plan does not have it send to ", title(options_.self));
      if (s.active && (s.arrived[h.edge] >= 0 || received(o, s, int(h.edge)))) came_twice(from, h);
      least = output_bytes(g_, e.node, s.active && s.asked ? s.what.run : sizes{1, 1}, size_of(device_.real));
      most = output_bytes(g_, e.node, s.active && s.asked ? s.what.run : o.what.bounds, size_of(device_.real));
    }
    if (h.total_length < least || h.total_length > most)
      refuse(h.total_length, " bytes in a message of kind ", int(h.kind), ", edge ", h.edge, ", expected ", least, " to ", most);
    return s;
  }
  [[noreturn]] void came_twice(int from, const frame_header& h) const {
    fail(errc::protocol, title(from), " sends a message of kind ", int(h.kind), ", edge ", h.edge, ", question ", h.step, " twice");
  }
  void begin(slot& s, u64 number) {
    s.number = number;
    s.used = s.active = true;
    s.asked = false;
    s.next = 0;
  }
  void asked(one& o, slot& s, int buffer) {
    const auto& bytes = buffers_[buffer];
    s.what = question::decode(bytes, g_, o.what);
    if (bytes.size() != question_bytes(g_, o.inputs, s.what.run, device_.real))
      fail(errc::protocol, "the broker's question ", s.number, " has ", bytes.size(), " bytes, expected ",
           question_bytes(g_, o.inputs, s.what.run, device_.real));
    const std::byte* at = bytes.data() + question::bytes;
    for (int i : o.inputs) {
      s.inputs[std::size_t(i)] = at;
      at += input_bytes(g_, i, s.what.run, device_.real);
    }
    check_indices(g_, s.inputs, s.what.run);
    s.question_buffer = buffer;
    s.asked = true;
  }

  // --- work
  const task& task_at(const one& o, std::size_t part) const {
    return o.forward.tasks[std::size_t(o.forward.tasks_of_stage[std::size_t(stage_)][part])];
  }
  /// An edge whose tensor an earlier part took.
  bool received(const one& o, const slot& s, int e) const {
    for (std::size_t p = 0; p < s.next; ++p)
      for (int x : task_at(o, p).receives)
        if (x == e) return true;
    return false;
  }
  /// An edge that the next part waits for, -1 if none.
  int missing(const one& o, const slot& s) const {
    for (int e : task_at(o, s.next).receives)
      if (s.arrived[std::size_t(e)] < 0 && !received(o, s, e)) return e;
    return -1;
  }

  void pump() {
    if (working_ || failed_) return;
    one* of = nullptr;
    slot* first = nullptr;
    for (one& o : outputs_)
      for (slot& s : o.slots)
        if (s.active && s.asked && missing(o, s) < 0 && (!first || s.number < first->number)) of = &o, first = &s;
    if (first) start(*of, *first);
  }
  void start(one& o, slot& s) {
    const task& t = task_at(o, s.next);
    const std::size_t at = std::size_t(&o - outputs_.data());
    in_.clear();
    for (int e : t.receives)
      if (const int b = s.arrived[std::size_t(e)]; b >= 0) in_.push_back({e, buffers_[b]});  // else an earlier part has it in place
    out_.clear();
    for (int e : t.sends) out_.push_back(buffers_.take(std::size_t(output_bytes(g_, o.forward.edges[std::size_t(e)].node, o.what.bounds, size_of(device_.real)))));
    const bool answers = s.next + 1 == o.forward.tasks_of_stage[std::size_t(stage_)].size() && plan_.stage_of[std::size_t(o.what.node)] == stage_;
    if (answers) out_.push_back(buffers_.take(0));
    out_memory_.clear();
    for (int b : out_) out_memory_.push_back(&buffers_[b]);
    nanoseconds hold = options_.holds.empty() ? 0 : options_.holds[at][std::size_t(&t - o.forward.tasks.data())];
    hold = nanoseconds(double(hold) * double(s.what.run.batch * s.what.run.time) / double(o.what.bounds.batch * o.what.bounds.time));
    working_ = true;
    queue_.submit([this, &o, &s, &t] { compute(o, s, t); }, hold, [this, &o, &s, &t](const completion& c) {
      working_ = false;
      ++progress_;
      finish(o, s, t, c.failure);
    });
  }
  // On the device's thread: messages that arrive meanwhile are not looked at here.
  void compute(one& o, slot& s, const task& t) {
    inference& x = *s.compute;
    const auto bytes = [](const tensor_ref& v) { return std::size_t(v.count()) * size_of(v.type); };
    for (const auto& [e, frame] : in_) {
      const edge& from = o.forward.edges[std::size_t(e)];
      const tensor_ref v = x.value(from.node, s.what.run, s.inputs);
      if (frame.size() != bytes(v))
        fail(errc::protocol, title(peer_for(plan_, o.what, from.from, s.number)), " sends ", frame.size(), " bytes of node ", from.node, ", expected ", bytes(v));
      x.put(v, frame.data());
    }
    x.run_part(s.next, s.what.run, s.inputs, s.what.loss_scale, s.what.past);
    for (std::size_t i = 0; i < t.sends.size(); ++i) {
      const tensor_ref v = x.seen(o.forward.edges[std::size_t(t.sends[i])].node, s.what.run, s.inputs);
      const auto* from = v.as<const std::byte>();
      out_memory_[i]->assign(from, from + bytes(v));
    }
    if (out_memory_.size() > t.sends.size()) put_answer(s, x.seen(o.what.node, s.what.run, s.inputs), *out_memory_.back());
  }
  static void put_answer(const slot& s, const tensor_ref& v, std::vector<std::byte>& to) {
    const std::size_t all = std::size_t(v.count()) * size_of(v.type), rows = s.what.last_time ? std::size_t(s.what.run.batch) : 1;
    const std::size_t row = all / rows, kept = s.what.last_time ? row / std::size_t(s.what.run.time) : row;
    to.clear();
    for (std::size_t r = 0; r < rows; ++r) {
      const auto* end = v.as<const std::byte>() + (r + 1) * row;
      to.insert(to.end(), end - kept, end);
    }
  }
  void finish(one& o, slot& s, const task& t, const std::exception_ptr& failure) {
    if (failure) return fail_with(failure);
    for (int e : t.receives)
      if (int& b = s.arrived[std::size_t(e)]; b >= 0) buffers_.give_back(std::exchange(b, -1));
    const u32 output = u32(&o - outputs_.data());
    ++s.next;
    for (std::size_t i = 0; i < t.sends.size(); ++i)
      send(peer_for(plan_, o.what, o.forward.edges[std::size_t(t.sends[i])].to, s.number), frame_kind::activation, output, s.number, u32(t.sends[i]), out_[i]);
    if (out_.size() > t.sends.size()) send(broker, answer_kind, output, s.number, 0, out_.back());
    if (s.next == o.forward.tasks_of_stage[std::size_t(stage_)].size()) {
      buffers_.give_back(std::exchange(s.question_buffer, -1));
      s.active = false;
    }
    pump();
  }
  void send(int to, frame_kind kind, u32 output, u64 number, u32 e, int buffer) {
    frame_header h;
    h.kind = kind;
    h.step = number;
    h.micro_batch = output;
    h.edge = e;
    h.source = u32(options_.self);
    h.destination = u32(to);
    h.epoch = options_.epoch;
    host_.send_forward(to, h, buffers_[buffer], u64(buffer));
  }
  void fail_with(const std::exception_ptr& e) {
    failed_ = true;
    try {
      std::rethrow_exception(e);
    } catch (const error& x) {
      host_.on_failure(x);
    } catch (const std::exception& x) {
      host_.on_failure(error(errc::internal, x.what()));
    }
  }

  graph_view g_;
  plan plan_;
  device_binding device_;
  forward_options options_;
  device_queue& queue_;
  forward_host& host_;
  int stage_;
  forward_weights weights_;
  std::vector<one> outputs_;
  buffer_pool buffers_;
  std::vector<placed> placed_;  ///< still arriving
  std::vector<std::pair<int, const_byte_span>> in_;    ///< of the running part: edges and their frames
  std::vector<int> out_;                               ///< buffers that it fills: of its sends, then of the answer
  std::vector<std::vector<std::byte>*> out_memory_;
  u64 progress_ = 0;
  bool working_ = false, failed_ = false;
};

}  // namespace fusionllm::inline v0
