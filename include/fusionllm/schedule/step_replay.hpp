// SPDX-License-Identifier: Apache-2.0
// One training step of a plan as discrete events, on the cost model, with the program and the dispatcher that the run
// uses. Schedulers ask it how long a candidate takes; the simulate layer records what it does. Events at one instant
// are taken in the order in which they were made, so that the same plan always gives the same nanosecond.
//
// A peer computes one task at a time; messages wait for their links (link_queues.hpp). After the last backward: every
// use of a parameter sends its gradient along its stage's replicas and on to the primary owner; each peer that has all
// gradients it owns reports to the leader; the leader answers; owners update and send the new values to other holders.
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
        seats_.push_back({p.peers[std::size_t(s)][k], dispatcher(prog, p, s, int(k)), {}, 0, 0, 0, false});
      }
    leader_ = f.graph().loss >= 0 ? leader_of(f.graph(), p) : p.peers.back().front();
    link_gradients();
  }

  /// From the first task to the last arrival of a new value.
  nanoseconds run() {
    for (std::size_t s = 0; s < seats_.size(); ++s) start_next(int(s));
    while (!events_.empty()) {
      std::pop_heap(events_.begin(), events_.end(), later);
      const event e = events_.back();
      events_.pop_back();
      now_ = e.at;
      take(e);
    }
    return now_;
  }

  bool finished() const { return finished_ == seats_.size(); }

 private:
  enum class event_kind : u8 { task_end, ready, sent, edge, gradient, summary, answer, updated, value };
  struct event {
    nanoseconds at;
    u64 order;
    event_kind kind;
    int seat;     ///< where it happens
    int subject;  ///< task, edge, chain, message
    int extra;    ///< micro-batch; place in a chain; number of a turn
  };
  static bool later(const event& a, const event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  /// A peer of the plan.
  struct seat {
    int peer;
    dispatcher tasks;
    std::vector<std::pair<int, int>> chains;  ///< that it has a place in: (chain, place)
    int owned_left;                           ///< gradients that it owns and does not have yet
    int owned;                                ///< parameters of which it is the primary owner
    u64 owned_parameters;                     ///< scalars in them
    bool computed;                            ///< all its tasks are done
  };
  /// What the arrival of a message means.
  struct delivery {
    event_kind what;
    int subject, extra;
    nanoseconds decode;  ///< between arrival and use
  };
  /// The gradient of one use of a parameter: summed along the replicas of the use's stage, then at the primary.
  struct chain {
    int parameter;
    std::vector<int> peers;
    std::vector<u8> received;
    int primary;
  };

  void link_gradients() {
    owners_ = owners_of(f_.graph(), plan_);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const parameter_owners& o = owners_[i];
      if (o.primary < 0) continue;
      ++at(o.primary).owned;
      at(o.primary).owned_parameters += f_.graph().params[i].count();
      if (o.holders.size() < 2) continue;
      for (int s : o.stages) {
        const auto& peers = plan_.peers[std::size_t(s)];
        if (peers.size() == 1 && peers.front() == o.primary) continue;
        for (std::size_t k = 0; k < peers.size(); ++k) at(peers[k]).chains.push_back({int(chains_.size()), int(k)});
        ++at(o.primary).owned_left;
        chains_.push_back({int(i), peers, std::vector<u8>(peers.size(), u8(0)), o.primary});
        chains_.back().received[0] = 1;
      }
    }
  }

  seat& at(int peer) { return seats_[std::size_t(seat_of_[std::size_t(peer)])]; }

  void push(nanoseconds when, event_kind kind, int where, int subject, int extra) {
    events_.push_back({when, order_++, kind, where, subject, extra});
    std::push_heap(events_.begin(), events_.end(), later);
  }

  void take(const event& e) {
    if (e.kind == event_kind::ready) return queue(e.subject);
    if (e.kind == event_kind::sent) return sent(e);
    seat& s = seats_[std::size_t(e.seat)];
    switch (e.kind) {
      case event_kind::ready:
      case event_kind::sent: return;
      case event_kind::task_end: task_end(e); return;
      case event_kind::edge:
        s.tasks.arrived(e.subject, e.extra);
        start_next(e.seat);
        return;
      case event_kind::gradient:
        if (e.extra == int(chains_[std::size_t(e.subject)].peers.size())) {
          --s.owned_left;
          report_if_ready(e.seat);
        } else {
          chains_[std::size_t(e.subject)].received[std::size_t(e.extra)] = 1;
          if (s.computed) pass_on(e.subject, e.extra);
        }
        return;
      case event_kind::summary:
        if (++reports_ == seats_.size())
          for (std::size_t k = 0; k < seats_.size(); ++k) note(message_kind::answer, event_kind::answer, s.peer, int(k), answer_bytes);
        return;
      case event_kind::answer: update(e.seat); return;
      case event_kind::updated: send_values(e.seat); return;
      case event_kind::value: return;
    }
  }

  void start_next(int seat_index) {
    seat& s = seats_[std::size_t(seat_index)];
    const auto t = s.tasks.next();
    if (!t) return;
    nanoseconds duration = 0;
    const task& work = prog_.tasks[std::size_t(t->task)];
    const direction way = work.backward ? direction::backward : direction::forward;
    for (int n : work.nodes) duration = plus(duration, f_.time(s.peer, n, way));
    record_(compute_record{s.peer, t->task, t->micro_batch, now_, now_ + duration});
    push(now_ + duration, event_kind::task_end, seat_index, t->task, t->micro_batch);
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
      send(m, event_kind::edge, edge_index, e.extra, coded ? costs_.coding(s.peer, raw) : 0, coded ? costs_.coding(to, raw) : 0);
    }
    if (s.tasks.done()) {
      s.computed = true;
      for (const auto& [c, place] : s.chains)
        if (chains_[std::size_t(c)].received[std::size_t(place)]) pass_on(c, place);
      report_if_ready(e.seat);
    } else {
      start_next(e.seat);
    }
  }

  void send(const message_record& m, event_kind what, int subject, int extra, nanoseconds encode = 0, nanoseconds decode = 0) {
    const int index = queues_.add(m);
    deliveries_.push_back({what, subject, extra, decode});
    if (encode > 0) push(now_ + encode, event_kind::ready, 0, index, 0);
    else queue(index);
  }
  void queue(int index) {
    if (const auto t = queues_.queue(index, now_)) push(t->end, event_kind::sent, 0, t->message, t->number);
  }
  void sent(const event& e) {
    if (!queues_.finish(e.subject, e.extra, now_)) return;
    const message_record& m = queues_.message(e.subject);
    const delivery& d = deliveries_[std::size_t(e.subject)];
    record_(m);
    push(m.arrived + d.decode, d.what, seat_of_[std::size_t(m.to)], d.subject, d.extra);
    if (const auto t = queues_.next(e.subject, now_)) push(t->end, event_kind::sent, 0, t->message, t->number);
  }

  // Place `place` of a chain has its sum: to the next replica, or to the primary owner.
  void pass_on(int c, int place) {
    const chain& x = chains_[std::size_t(c)];
    const bool last = place + 1 == int(x.peers.size());
    const int from = x.peers[std::size_t(place)], to = last ? x.primary : x.peers[std::size_t(place) + 1];
    const u64 bytes = f_.graph().params[std::size_t(x.parameter)].count() * 4;
    send({message_kind::gradient, from, to, x.parameter, -1, bytes, bytes}, event_kind::gradient, c, place + 1);
  }

  void report_if_ready(int seat_index) {
    const seat& s = seats_[std::size_t(seat_index)];
    if (s.computed && s.owned_left == 0)
      note(message_kind::summary, event_kind::summary, s.peer, seat_of_[std::size_t(leader_)], summary_bytes(s));
  }

  // A count of each kind, then a number and a value for every owned parameter and every loss.
  u64 summary_bytes(const seat& s) const {
    const bool has_loss = f_.graph().loss >= 0 && plan_.stage_of_peer(s.peer) == plan_.stage_of[std::size_t(f_.graph().loss)];
    return 8 + 12 * (u64(s.owned) + (has_loss ? s.tasks.micro_batches().size() : 0));
  }

  // A few numbers from a peer to a seat.
  void note(message_kind kind, event_kind what, int from, int to_seat, u64 bytes) {
    const int to = seats_[std::size_t(to_seat)].peer;
    if (from == to) return push(now_, what, to_seat, 0, 0);
    send({kind, from, to, -1, -1, bytes, bytes}, what, 0, 0);
  }

  void update(int seat_index) {
    const seat& s = seats_[std::size_t(seat_index)];
    const nanoseconds duration = costs_.update(s.peer, s.owned_parameters);
    if (duration > 0) record_(compute_record{s.peer, -1, -1, now_, now_ + duration});
    push(now_ + duration, event_kind::updated, seat_index, 0, 0);
  }

  void send_values(int seat_index) {
    ++finished_;
    const int peer = seats_[std::size_t(seat_index)].peer;
    for (std::size_t i = 0; i < owners_.size(); ++i)
      if (owners_[i].primary == peer)
        for (int to : owners_[i].holders)
          if (to != peer) {
            const u64 bytes = f_.graph().params[i].count() * 4;
            send({message_kind::value, peer, to, int(i), -1, bytes, bytes}, event_kind::value, int(i), 0);
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
  u64 order_ = 0;
  int leader_ = -1;
  std::size_t reports_ = 0;
  std::size_t finished_ = 0;
};

}  // namespace fusionllm::inline v0
