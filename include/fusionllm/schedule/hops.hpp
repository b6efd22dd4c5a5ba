// SPDX-License-Identifier: Apache-2.0
// What every cut of a chain costs between two peers, activations there and cotangents back. Most pairs of peers are
// joined alike, so costs are kept by class of hop: the two paths and the two codecs.
#pragma once

#include "profile.hpp"

namespace fusionllm::inline v0 {

class hop_table {
 public:
  /// For the cuts at these positions of the topological order.
  hop_table(const step_profile& f, const std::vector<int>& positions) : f_(f), positions_(positions) {
    class_.assign(std::size_t(f.problem().peers()) * std::size_t(f.problem().peers()), -1);
  }

  /// Class of the hop from one peer to another.
  int of(int from, int to) {
    int& known = class_[std::size_t(from) * std::size_t(f_.problem().peers()) + std::size_t(to)];
    if (known < 0) known = find(from, to);
    return known;
  }
  /// Occupancy of the busier direction; `never` where a needed direction is closed.
  nanoseconds busy(int hop, std::size_t cut) const { return busy_[std::size_t(hop) * positions_.size() + cut]; }
  /// Transfer there and back.
  nanoseconds span(int hop, std::size_t cut) const { return span_[std::size_t(hop) * positions_.size() + cut]; }
  const std::vector<i64>& all_busy() const { return busy_; }
  const std::vector<i64>& all_spans() const { return span_; }

 private:
  struct kind {
    path there, back;
    std::size_t codec_there, codec_back;
    bool operator==(const kind&) const = default;
  };

  std::size_t codec(const link_codec& c) {
    for (std::size_t i = 0; i < codecs_.size(); ++i)
      if (codecs_[i].codec == c.codec && codecs_[i].ratio == c.ratio) return i;
    codecs_.push_back(c);
    for (int p : positions_) bytes_.push_back(f_.cut_bytes(p, c));
    return codecs_.size() - 1;
  }

  int find(int from, int to) {
    const planning_problem& q = f_.problem();
    const kind k{q.costs->link(from, to), q.costs->link(to, from), codec(q.codec_between(from, to)),
                 codec(q.codec_between(to, from))};
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == k) return int(i);
    kinds_.push_back(k);
    for (std::size_t c = 0; c < positions_.size(); ++c) {
      const u64 tensors = f_.crossing(positions_[c]).size(), overhead = tensors * q.costs->message_overhead();
      const u64 there = bytes_[k.codec_there * positions_.size() + c] + overhead;
      const u64 back = bytes_[k.codec_back * positions_.size() + c] + overhead;
      busy_.push_back(tensors == 0 ? 0 : (std::max)(k.there.occupancy(there), k.back.occupancy(back)));
      span_.push_back(tensors == 0 ? 0 : plus(k.there.transfer(there), k.back.transfer(back)));
    }
    return int(kinds_.size()) - 1;
  }

  const step_profile& f_;
  const std::vector<int>& positions_;
  std::vector<int> class_;           ///< [from][to]
  std::vector<kind> kinds_;
  std::vector<link_codec> codecs_;
  std::vector<u64> bytes_;           ///< [codec][cut]
  std::vector<i64> busy_, span_;     ///< [class][cut]
};

}  // namespace fusionllm::inline v0
