// SPDX-License-Identifier: Apache-2.0
// A training step of a plan as discrete events, on the cost model, with the program and the dispatcher that the run
// uses. Schedulers ask it how long a candidate takes; the simulate layer records what it does. Events at one instant
// are taken in the order in which they were made, so that the same plan always gives the same nanosecond.
//
// A peer computes one task at a time; messages wait for their links (link_queues.hpp). After the last backward: every
// use of a parameter sends its gradient along its stage's replicas and on to the primary owner; each peer that has all
// gradients it owns reports to the leader; the leader answers; owners update and send the new values to other holders. A
// peer that has updated and has all new values begins its next step: it does not wait for the others.
//
// Therefore steps overlap, and a step is what passes from one answer of the leader to the next, after the first step,
// in which all peers begin at once. Everything that a step does happens once in that time: the update of one step, then
// tasks, gradients and summaries of the next.
#pragma once

#include "dispatcher.hpp"
#include "link_queues.hpp"
#include "owners.hpp"
#include "profile.hpp"

namespace fusionllm::inline v0 {

struct compute_record {
  int peer;
  int task;                 ///< of the program; -1: the optimizer
  int micro_batch;          ///< -1: none
  nanoseconds start, end;
};

/// Records nothing.
struct no_record {
  void operator()(const message_record&) {}
  void operator()(const compute_record&) {}
};

template <class Record = no_record>
class step_replay {
 public:
  /// Keeps all by reference. The plan must be one that `obstacle` has nothing to say about.
  step_replay(const step_profile& f, const plan& p, const program& prog, Record& record)
      : f_(f), costs_(*f.problem().costs), plan_(p), prog_(prog), record_(record), queues_(costs_) {
    const std::size_t n = std::size_t(costs_.peers());
    codec_.resize(n * n, -1);
    seat_of_.resize(n, -1);
    for (std::size_t c = 0; c < p.codecs.size(); ++c)
      codec_[std::size_t(p.codecs[c].from) * n + std::size_t(p.codecs[c].to)] = int(c);
    for (int s = 0; s < p.stages(); ++s)
      for (std::size_t k = 0; k < p.peers[std::size_t(s)].size(); ++k) {
        seat_of_[std::size_t(p.peers[std::size_t(s)][k])] = int(seats_.size());
        seats_.push_back({p.peers[std::size_t(s)][k], dispatcher(prog, p, s, int(k))});
      }
    leader_ = f.graph().loss >= 0 ? leader_of(f.graph(), p) : p.peers.back().front();
    link_gradients();
  }

  /// The last of `steps` steps (2 or more), from answer to answer; only it is recorded, from time 0.
  nanoseconds run(int steps = 2) {
    steps_ = steps;
    for (std::size_t s = 0; s < seats_.size(); ++s) begin_step(int(s));
    while (!events_.empty() && !finished()) {
      std::pop_heap(events_.begin(), events_.end(), later);
      const event e = events_.back();
      events_.pop_back();
      now_ = e.at;
      take(e);
    }
    return now_ - before_;
  }

  bool finished() const { return answered_ == steps_; }

 private:
  enum class event_kind : u8 { task_end, ready, sent, edge, gradient, summary, answer, updated, value };
  struct event {
    nanoseconds at;
    u64 order;
    event_kind kind;
    int step;
    int seat;     ///< where it happens
    int subject;  ///< task, edge, chain, message
    int extra;    ///< micro-batch; place in a chain; number of a turn
  };
  static bool later(const event& a, const event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  /// A peer of the plan, and how far it is in its step.
  struct seat {
    int peer;
    dispatcher tasks;
    std::vector<std::pair<int, int>> chains{};  ///< that it has a place in: (chain, place)
    int uses = 0;                    ///< of parameters that it owns, whose gradients come from elsewhere
    int owned = 0;                   ///< parameters of which it is the primary owner
    u64 owned_parameters = 0;        ///< scalars in them
    int copies = 0;                  ///< parameters that it holds and does not own
    std::vector<event> early{};      ///< of its next step
    int step = -1;
    int chains_left = 0, uses_left = 0, copies_left = 0;  ///< that it still waits for
    bool passed_on = false, reported = false, updated = false;
  };
  /// What the arrival of a message means.
  struct delivery {
    event_kind what;
    int step;
    int subject, extra;
    nanoseconds decode;  ///< between arrival and use
  };
  /// The gradient of one use of a parameter: summed along the replicas of the use's stage, then at the primary.
  struct chain {
    int parameter;
    std::vector<int> peers;
    int primary;
  };

  void link_gradients() {
    owners_ = owners_of(f_.graph(), plan_);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const parameter_owners& o = owners_[i];
      if (o.primary < 0) continue;
      ++at(o.primary).owned;
      at(o.primary).owned_parameters += f_.graph().params[i].count();
      for (int h : o.holders) at(h).copies += h != o.primary;
      if (o.holders.size() < 2) continue;
      for (int s : o.stages) {
        const auto& peers = plan_.peers[std::size_t(s)];
        if (peers.size() == 1 && peers.front() == o.primary) continue;
        for (std::size_t k = 0; k < peers.size(); ++k) at(peers[k]).chains.push_back({int(chains_.size()), int(k)});
        ++at(o.primary).uses;
        chains_.push_back({int(i), peers, o.primary});
      }
    }
  }

  seat& at(int peer) { return seats_[std::size_t(seat_of_[std::size_t(peer)])]; }

  void push(nanoseconds when, event_kind kind, int step, int where, int subject, int extra) {
    events_.push_back({when, order_++, kind, step, where, subject, extra});
    std::push_heap(events_.begin(), events_.end(), later);
  }

  void begin_step(int seat_index) {
    seat& s = seats_[std::size_t(seat_index)];
    ++s.step;
    s.tasks.begin_step();
    s.chains_left = int(std::count_if(s.chains.begin(), s.chains.end(), [](const auto& c) { return c.second > 0; }));
    s.uses_left = s.uses;
    s.copies_left = s.copies;
    s.passed_on = s.reported = s.updated = false;
    for (const event& e : std::exchange(s.early, {})) take(e);
    start_next(seat_index);
  }

  void take(const event& e) {
    if (e.kind == event_kind::ready) return queue(e.subject);
    if (e.kind == event_kind::sent) return sent(e);
    seat& s = seats_[std::size_t(e.seat)];
    if (e.step > s.step) return s.early.push_back(e);
    switch (e.kind) {
      case event_kind::ready:
      case event_kind::sent: return;
      case event_kind::task_end: task_end(e); return;
      case event_kind::edge:
        s.tasks.arrived(e.subject, e.extra);
        start_next(e.seat);
        return;
      case event_kind::gradient:
        --(e.extra == int(chains_[std::size_t(e.subject)].peers.size()) ? s.uses_left : s.chains_left);
        go_on(e.seat);
        return;
      case event_kind::summary:
        if (++reports_ == seats_.size()) answer(e.seat);
        return;
      case event_kind::answer: update(e.seat); return;
      case event_kind::updated:
        send_values(e.seat);
        s.updated = true;
        end_step(e.seat);
        return;
      case event_kind::value:
        --s.copies_left;
        end_step(e.seat);
        return;
    }
  }

  // The leader has all reports.
  void answer(int seat_index) {
    reports_ = 0;
    if (++answered_ == steps_) return;
    before_ = now_;
    const seat& leader = seats_[std::size_t(seat_index)];
    for (std::size_t k = 0; k < seats_.size(); ++k)
      note(message_kind::answer, event_kind::answer, leader.step, leader.peer, int(k), answer_bytes);
  }
  void end_step(int seat_index) {
    const seat& s = seats_[std::size_t(seat_index)];
    if (s.updated && s.copies_left == 0) begin_step(seat_index);
  }

  void start_next(int seat_index) {
    seat& s = seats_[std::size_t(seat_index)];
    const auto t = s.tasks.next();
    if (!t) return;
    nanoseconds duration = 0;
    const task& work = prog_.tasks[std::size_t(t->task)];
    const direction way = work.backward ? direction::backward : direction::forward;
    for (int n : work.nodes) duration = plus(duration, f_.time(s.peer, n, way));
    record(compute_record{s.peer, t->task, t->micro_batch, now_, now_ + duration});
    push(now_ + duration, event_kind::task_end, s.step, seat_index, t->task, t->micro_batch);
  }

  void task_end(const event& e) {
    seat& s = seats_[std::size_t(e.seat)];
    s.tasks.finished({e.subject, e.extra});
    for (int edge_index : prog_.tasks[std::size_t(e.subject)].sends) {
      const edge& x = prog_.edges[std::size_t(edge_index)];
      const int to = plan_.peer_of(x.to, e.extra);
      const int c = codec_[std::size_t(s.peer) * std::size_t(costs_.peers()) + std::size_t(to)];
      const u64 raw = f_.cost(x.node).output_bytes;
      const u64 bytes = c < 0 ? raw : f_.wire_bytes(x.node, plan_.codecs[std::size_t(c)]);
      const bool coded = bytes != raw;
      const message_record m{x.kind == edge_kind::activation ? message_kind::activation : message_kind::cotangent,
                             s.peer, to, edge_index, e.extra, raw, bytes};
      send(m, event_kind::edge, s.step, edge_index, e.extra, coded ? costs_.coding(s.peer, raw) : 0, coded ? costs_.coding(to, raw) : 0);
    }
    if (s.tasks.done()) go_on(e.seat);
    else start_next(e.seat);
  }

  // After its tasks a peer adds its gradients to those of the replica before it, passes all sums on, waits for all sums
  // that it owns, and reports.
  void go_on(int seat_index) {
    seat& s = seats_[std::size_t(seat_index)];
    if (!s.tasks.done() || s.chains_left > 0) return;
    if (!std::exchange(s.passed_on, true))
      for (const auto& [c, place] : s.chains) pass_on(s.step, c, place);
    if (s.uses_left > 0 || std::exchange(s.reported, true)) return;
    note(message_kind::summary, event_kind::summary, s.step, s.peer, seat_of_[std::size_t(leader_)], summary_bytes(s));
  }

  void send(const message_record& m, event_kind what, int step, int subject, int extra, nanoseconds encode = 0, nanoseconds decode = 0) {
    const int index = queues_.add(m, step);
    deliveries_.push_back({what, step, subject, extra, decode});
    if (encode > 0) push(now_ + encode, event_kind::ready, step, 0, index, 0);
    else queue(index);
  }
  void queue(int index) {
    if (const auto t = queues_.queue(index, now_)) push(t->end, event_kind::sent, 0, 0, t->message, t->number);
  }
  void sent(const event& e) {
    if (!queues_.finish(e.subject, e.extra, now_)) return;
    const message_record& m = queues_.message(e.subject);
    const delivery& d = deliveries_[std::size_t(e.subject)];
    record(m);
    push(m.arrived + d.decode, d.what, d.step, seat_of_[std::size_t(m.to)], d.subject, d.extra);
    if (const auto t = queues_.next(e.subject, now_)) push(t->end, event_kind::sent, 0, 0, t->message, t->number);
  }

  bool in_last_step() const { return answered_ + 1 == steps_; }
  void record(message_record m) {
    if (!in_last_step()) return;
    for (nanoseconds* t : {&m.start, &m.sent, &m.arrived}) *t -= before_;
    record_(m);
  }
  void record(compute_record c) {
    if (!in_last_step()) return;
    c.start -= before_;
    c.end -= before_;
    record_(c);
  }

  // Place `place` of a chain has its sum: to the next replica, or to the primary owner.
  void pass_on(int step, int c, int place) {
    const chain& x = chains_[std::size_t(c)];
    const bool last = place + 1 == int(x.peers.size());
    const int from = x.peers[std::size_t(place)], to = last ? x.primary : x.peers[std::size_t(place) + 1];
    const u64 bytes = f_.graph().params[std::size_t(x.parameter)].count() * 4;
    send({message_kind::gradient, from, to, x.parameter, -1, bytes, bytes}, event_kind::gradient, step, c, place + 1);
  }

  // A count of each kind, then a number and a value for every owned parameter and every loss.
  u64 summary_bytes(const seat& s) const {
    const bool has_loss = f_.graph().loss >= 0 && plan_.stage_of_peer(s.peer) == plan_.stage_of[std::size_t(f_.graph().loss)];
    return 8 + 12 * (u64(s.owned) + (has_loss ? s.tasks.micro_batches().size() : 0));
  }

  // A few numbers from a peer to a seat.
  void note(message_kind kind, event_kind what, int step, int from, int to_seat, u64 bytes) {
    const int to = seats_[std::size_t(to_seat)].peer;
    if (from == to) return push(now_, what, step, to_seat, 0, 0);
    send({kind, from, to, -1, -1, bytes, bytes}, what, step, 0, 0);
  }

  void update(int seat_index) {
    const seat& s = seats_[std::size_t(seat_index)];
    const nanoseconds duration = costs_.update(s.peer, s.owned_parameters);
    if (duration > 0) record(compute_record{s.peer, -1, -1, now_, now_ + duration});
    push(now_ + duration, event_kind::updated, s.step, seat_index, 0, 0);
  }

  void send_values(int seat_index) {
    const auto [peer, step] = std::pair(seats_[std::size_t(seat_index)].peer, seats_[std::size_t(seat_index)].step);
    for (std::size_t i = 0; i < owners_.size(); ++i)
      if (owners_[i].primary == peer)
        for (int to : owners_[i].holders)
          if (to != peer) {
            const u64 bytes = f_.graph().params[i].count() * 4;
            send({message_kind::value, peer, to, int(i), -1, bytes, bytes}, event_kind::value, step, int(i), 0);
          }
  }

  static constexpr u64 answer_bytes = 32;

  const step_profile& f_;
  const cost_model& costs_;
  const plan& plan_;
  const program& prog_;
  Record& record_;
  link_queues queues_;
  std::vector<delivery> deliveries_;  ///< of each message
  std::vector<int> codec_;    ///< [from][to]: index into the plan's codecs
  std::vector<int> seat_of_;  ///< peer -> seat
  std::vector<seat> seats_;
  std::vector<chain> chains_;
  std::vector<parameter_owners> owners_;
  std::vector<event> events_;
  nanoseconds now_ = 0;
  nanoseconds before_ = 0;  ///< when the leader answered last
  u64 order_ = 0;
  int leader_ = -1;
  int steps_ = 2, answered_ = 0;
  std::size_t reports_ = 0;
};

}  // namespace fusionllm::inline v0
