// SPDX-License-Identifier: Apache-2.0
// `local`: a run over several processes of this machine, joined by loopback sockets. The broker is in this process, the
// peers are copies of this program. Every way out of here ends all of them.
#pragma once

#include <random>

#include "broker.hpp"
#include "child_process.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// A configuration that children read as a file, without leaving one behind.
class shared_text {
 public:
  explicit shared_text(std::string_view text) : file_(::memfd_create("config", 0)) {
    if (file_.get() < 0 || ::write(file_.get(), text.data(), text.size()) != ssize_t(text.size()))
      fail(errc::resource, "cannot keep the configuration of the peers in memory: ", std::strerror(errno));
  }
  /// As a child that inherits it opens it.
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  descriptor file_;
};

inline std::string random_hex() {
  std::random_device source;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", source(), source(), source(), source());
  return text;
}

class local_peers {
 public:
  local_peers(const command_call& call, const cluster_settings& s) : call_(call) {
    for (int i = 0; i < s.peers; ++i)
      names_.push_back(s.machines ? s.machines->peers[std::size_t(i)].name : "peer-" + std::to_string(i));
  }

  /// `more`: words for each of them.
  void start(const address& broker, const std::vector<std::string>& more = {}) {
    run_config c = call_.config;
    c.broker = to_string(broker);
    c.bind = "127.0.0.1:0";
    c.announce.clear();
    config_.emplace(to_json(c));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::vector<std::string> words{call_.path, "peer", "--config", config_->path(), "--rank", std::to_string(i),
                                     "--name", names_[i], "--quiet"};
      words.insert(words.end(), more.begin(), more.end());
      if (!c.data.empty()) words.insert(words.end(), {"--data", c.data});  // JSON keeps no bytes that are not UTF-8
      children_.emplace_back(names_[i], words, std::vector<std::string>{"FUSIONLLM_TOKEN=" + c.token});
    }
  }
  bool started() const { return !children_.empty(); }

  /// The first child that ended, null while all run.
  child_process* ended() {
    for (auto& c : children_)
      if (!c.running()) return &c;
    return nullptr;
  }

  /// Waits for all, `most` at most, ends and then kills those that are left, and says how they ended that did not end well.
  std::vector<std::string> finish(nanoseconds most) {
    std::vector<std::string> reports;
    wait_for_all(most);
    for (auto& c : children_)
      if (c.running()) reports.push_back(c.name() + " did not end with the run and was killed");
      else if (!c.ended_well()) reports.push_back(c.ending());
    for (int number : {SIGTERM, SIGKILL}) {
      for (auto& c : children_)
        if (c.running()) c.signal(number);
      wait_for_all(2 * second);
    }
    return reports;
  }

 private:
  void wait_for_all(nanoseconds most) {
    const nanoseconds deadline = machine_clock::read() + most;
    for (auto& c : children_)
      while (c.running() && machine_clock::read() < deadline) ::usleep(2000);
  }

  const command_call& call_;
  std::vector<std::string> names_;
  std::optional<shared_text> config_;
  std::vector<child_process> children_;
};

/// Notices a child that ended before the run did.
inline void watch_children(local_peers& peers, broker_node& broker, nanoseconds& noticed) {
  child_process* dead = peers.ended();
  if (!dead) return;
  if (noticed == 0) noticed = machine_clock::read();
  // Its own last words, if it could send any, say more: they get a moment to arrive.
  if (machine_clock::read() - noticed < second) return;
  const int status = dead->exit_status();
  broker.break_off(error(status > 0 && status < 128 ? errc(status) : errc::peer_lost, dead->ending()));
}

}  // namespace detail

inline int local_command(const command_call& given) {
  command_call call = given;
  if (call.config.token.empty()) call.config.token = detail::random_hex();
  if (call.config.run_id.empty()) call.config.run_id = detail::random_hex();
  call.options.listen = "127.0.0.1:0";
  const cluster_settings s = detail::full_settings_of(call);
  if (s.machines && s.machines->size() < s.peers)
    fail(errc::config, "peers is ", s.peers, ", the topology '", call.config.topology, "' has ", s.machines->size(), " devices");
  const auto data = open_data(call);
  command_sinks sinks(call, data->digest());
  detail::broker_process process(call, s, sinks);
  const u64 first = call.config.resume ? process.resume() : 0;
  if (first >= s.steps) {
    process.on_text("nothing left to do: step " + std::to_string(first) + " of " + std::to_string(s.steps) + " is done");
    sinks.finish(call);
    return 0;
  }
  process.on_text(data->describe());
  detail::local_peers peers(call, s);
  nanoseconds noticed = 0;
  detail::run_broker(call, process, s, data->digest(), first, [&](broker_node& broker, const address& at) {
    if (!peers.started()) peers.start(at);
    else detail::watch_children(peers, broker, noticed);
  });
  const errc code = process.ending().code();
  for (const std::string& r : peers.finish(5 * second)) process.warn(r);
  if (code == errc::ok) detail::evaluate_state(call, *data, process.state(), sinks.all);
  sinks.finish(call);
  if (code != errc::ok) throw error(process.ending());
  return 0;
}

}  // namespace fusionllm::inline v0
