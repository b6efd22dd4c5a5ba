// SPDX-License-Identifier: Apache-2.0
// The one cost model of planner, simulator and emulated run, in integer nanoseconds:
//   compute(peer, operator) = flops / (efficiency * peak) + bytes / memory speed + launch, fitted per kind of operator
//   transfer(a -> b, bytes) = latency + bytes / bandwidth, and the path is busy for bytes / bandwidth
// How many bytes a compressed tensor takes is told to it by a function, since compressors are another layer.
#pragma once

#include "../graph/cost.hpp"
#include "rates.hpp"

namespace fusionllm::inline v0 {

/// Bytes on the wire of an fp32 tensor of (rows, columns) by a compressor's name and ratio.
using encoded_bytes_function = u64 (*)(std::string_view codec, double ratio, i64 rows, i64 columns);

/// What is assumed where no compressor was asked: raw bytes over the ratio, never more than raw.
inline u64 bytes_by_ratio(std::string_view codec, double ratio, i64 rows, i64 columns) {
  const u64 raw = u64(rows) * u64(columns) * 4;
  if (codec.empty() || codec == "none" || !(ratio > 1)) return raw;
  const u64 thousandths = ratio < 1e6 ? u64(ratio * 1000 + 0.5) : 1'000'000'000;
  return u64(scaled(raw, 1000, thousandths));
}

class cost_model {
 public:
  /// Rates as assumed from the machines. Errors: errc::topology for a cluster that `check` refuses.
  explicit cost_model(cluster c, encoded_bytes_function encoded = &bytes_by_ratio)
      : cluster_(std::move(c)), encoded_(encoded) {
    check(cluster_);
    for (const machine& m : cluster_.peers) rates_.push_back(assumed_rates(m));
  }

  const cluster& machines() const { return cluster_; }
  int peers() const { return cluster_.size(); }

  /// Replaces what was assumed by what was measured.
  void set_rates(int peer, device_rates r) { rates_[std::size_t(peer)] = std::move(r); }
  const device_rates& rates(int peer) const { return rates_[std::size_t(peer)]; }
  void set_path(int from, int to, const path& p) { cluster_.between(from, to) = p; }
  /// Bytes that every message adds to its payload.
  void set_message_overhead(u64 bytes) { overhead_ = bytes; }
  u64 message_overhead() const { return overhead_; }

  /// One operator of a kind on one micro-batch. `moved`: bytes that forward reads and writes; backward moves twice that.
  nanoseconds compute(int peer, std::string_view kind, direction way, u64 flops, u64 moved) const {
    return rates(peer).of(kind, way).time(flops, way == direction::forward ? moved : 2 * moved);
  }
  nanoseconds compute(int peer, std::string_view kind, direction way, const node_cost& c) const {
    return compute(peer, kind, way, way == direction::forward ? c.flops_forward : c.flops_backward, c.moved_bytes);
  }
  /// Node `i` of a graph; 0 for a model's input.
  nanoseconds compute(int peer, const graph_view& g, int i, direction way, const sizes& s) const {
    const node& n = g.nodes[std::size_t(i)];
    return n.op->placeholder ? 0 : compute(peer, n.op->name, way, cost_of(g, i, s));
  }
  /// The optimizer's work on so many parameters.
  nanoseconds update(int peer, u64 parameters) const {
    return parameters == 0 ? 0 : rates(peer).update.time(parameters, 0);
  }
  /// Encoding or decoding a tensor of so many raw bytes.
  nanoseconds coding(int peer, u64 raw_bytes) const {
    return scaled(raw_bytes, rates(peer).attoseconds_per_coded_byte, attoseconds_per_nanosecond);
  }

  bool reachable(int from, int to) const { return from == to || cluster_.between(from, to).open(); }
  const path& link(int from, int to) const { return cluster_.between(from, to); }
  /// Payload `bytes` from one peer to another; 0 within a peer, `never` where nothing gets through.
  nanoseconds transfer(int from, int to, u64 bytes) const {
    return from == to ? 0 : link(from, to).transfer(bytes + overhead_);
  }
  nanoseconds occupancy(int from, int to, u64 bytes) const {
    return from == to ? 0 : link(from, to).occupancy(bytes + overhead_);
  }

  /// Payload of a tensor on the wire. Integers travel raw; a tensor that grows is sent raw.
  u64 wire_bytes(std::string_view codec, double ratio, const extents& dims, element type = element::real) const {
    const u64 raw = u64(dims.count()) * element_bytes(type, 4);
    if (codec.empty() || codec == "none" || type != element::real) return raw;
    const u64 encoded = encoded_(codec, ratio, dims.rows(), dims.last());
    return encoded < raw ? encoded : raw;
  }

 private:
  cluster cluster_;
  std::vector<device_rates> rates_;
  encoded_bytes_function encoded_;
  u64 overhead_ = 80;
};

}  // namespace fusionllm::inline v0
