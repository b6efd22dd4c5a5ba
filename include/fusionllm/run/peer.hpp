// SPDX-License-Identifier: Apache-2.0
// `peer`: joins a run and computes its part of each step, or of the answers to questions.
#pragma once

#include "../cluster/peer.hpp"
#include "../trainer/data_buffers.hpp"
#include "../transport/asio_tcp.hpp"
#include "open_data.hpp"
#include "settings.hpp"
#include "stop_signal.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// What the processes of a run must have the same. Where questions are answered it is less: all else follows from them.
inline std::vector<config_entry> compared_entries(const command_call& call, u64 data_digest) {
  if (call.options.answer) return {{"answer", "true"}, {"peers", std::to_string(call.config.peers)}};
  std::vector<config_entry> all = agreed_entries(call.config, data_digest);
  all.insert(all.begin(), {"answer", "false"});
  return all;
}

/// Who this process is to the others.
inline transport_options transport_options_of(const command_call& call, const char* role, u64 data_digest) {
  const run_config& c = call.config;
  transport_options o;
  o.self.run = c.run_id;
  o.self.token = c.token;
  o.self.fingerprint = call.model.fingerprint;
  o.self.config = compared_entries(call, data_digest);
  o.self.role = role;
  o.self.name = !c.name.empty() ? c.name : role == std::string_view("peer") ? "peer-" + std::to_string(c.rank) : role;
  o.self.rank = u32(c.rank);
  o.handshake_timeout = duration_of(c.handshake_timeout);
  o.insecure_network = c.insecure_network;
  if (!c.announce.empty()) o.announce = parse_address(c.announce);
  return o;
}

/// Lets connections say goodbye, for `most` at most.
inline void drain(reactor& loop, const asio_tcp& net, nanoseconds most) {
  loop.run_while([&] { return !net.quiet(); }, most);
}

/// The data of a peer, loaded for the inputs that its stage reads. A peer whose stage reads none needs none.
class peer_process final : public peer_host {
 public:
  explicit peer_process(const command_call& call)
      : call_(call), real_(call.model.device(call.config.device).real), ended_(errc::ok, "") {
    if (!call.options.answer) data_ = open_data_if_named(call);
  }

  u64 data_digest() const { return data_ ? data_->digest() : 0; }
  const error& ending() const { return ended_; }

  void load(u64 step, std::span<const int> nodes, step_data& data) override {
    const run_config& c = call_.config;
    data.rows = c.batch;
    data.time = c.time;
    if (nodes.empty()) return;
    if (!data_) data_ = open_data(call_);
    if (!buffers_) buffers_.emplace(call_.model.graph, real_, sizes{c.batch, c.time}, nodes);
    buffers_->fill(*data_, step, 0, c.batch);
    for (int i : nodes) data.inputs[std::size_t(i)] = buffers_->of_node(i);
  }
  void on_end(const error& why) override { ended_ = why; }

 private:
  const command_call& call_;
  dtype real_;
  std::unique_ptr<data_source> data_;
  std::optional<data_buffers> buffers_;
  error ended_;
};

}  // namespace detail

inline int peer_command(const command_call& call) {
  const run_config& c = call.config;
  detail::peer_process process(call);
  asio_reactor loop;
  asio_tcp sockets(loop, detail::transport_options_of(call, "peer", process.data_digest()));
  paced_links paces(loop);
  paced net(sockets, paces);
  worker_queue queue(loop);
  peer_options o;
  o.rank = u32(c.rank);
  o.name = detail::transport_options_of(call, "peer", 0).self.name;
  o.bind = parse_address(c.bind);
  o.broker = parse_address(c.broker);
  o.device = c.device;
  o.threads = int(c.threads);
  o.memory_bytes = u64(c.memory_mib) << 20;
  peer_node peer(call.model, cluster_settings_of(c), o, net, &paces, queue, process);
  const stop_signal stop;
  peer.start();
  if (!call.options.quiet) {
    std::fprintf(call.notes, "%s listens on %s and joins the broker at %s\n", o.name.c_str(), to_string(peer.listening()).c_str(), c.broker.c_str());
  }
  while (!peer.ended()) {
    loop.run_one(loop.now() + 100 * millisecond);
    if (stop.requested()) peer.request_stop();
  }
  detail::drain(loop, sockets, 5 * second);
  if (process.ending().code() != errc::ok) throw error(process.ending());
  if (!call.options.quiet) std::fprintf(call.notes, "%s: %s\n", o.name.c_str(), process.ending().what());
  return 0;
}

}  // namespace fusionllm::inline v0
