// SPDX-License-Identifier: Apache-2.0
// From an address as written to endpoints: numbers, localhost (both families), interface names, host names. Only the
// last can take long; it is asked on a thread of its own, so that the wait can be given up.
#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <asio/ip/tcp.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "address.hpp"
#include "reactor.hpp"

namespace fusionllm::inline v0 {
namespace detail {

using endpoint = asio::ip::tcp::endpoint;

inline address address_of(const endpoint& e) { return {e.address().to_string(), e.port()}; }

struct resolution {
  std::vector<endpoint> endpoints;
  std::string problem;  ///< why there are none
};

/// Addresses of this machine, of the interface `name` or of all; `names` collects the interfaces seen.
inline std::vector<asio::ip::address> local_addresses(const std::string& name, std::string* names = nullptr) {
  std::vector<asio::ip::address> v4, v6;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (names && names->find(i->ifa_name) == std::string::npos)
      *names += (names->empty() ? "" : ", ") + std::string(i->ifa_name);
    if (!i->ifa_addr || (!name.empty() && name != i->ifa_name)) continue;
    endpoint e;
    if (i->ifa_addr->sa_family == AF_INET) {
      std::memcpy(e.data(), i->ifa_addr, sizeof(sockaddr_in));
      v4.push_back(e.address());
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      e = endpoint(asio::ip::tcp::v6(), 0);
      std::memcpy(e.data(), i->ifa_addr, sizeof(sockaddr_in6));
      v6.push_back(e.address());
    }
  }
  freeifaddrs(list);
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

/// True when no name service is needed.
inline bool resolve_locally(const address& a, resolution& out) {
  asio::error_code failed;
  const asio::ip::address number = asio::ip::make_address(a.host, failed);
  if (!failed) {
    out.endpoints = {{number, a.port}};
  } else if (a.host == "localhost") {
    out.endpoints = {{asio::ip::address_v4::loopback(), a.port}, {asio::ip::address_v6::loopback(), a.port}};
  } else if (if_nametoindex(a.host.c_str()) != 0) {
    for (const auto& ip : local_addresses(a.host)) out.endpoints.emplace_back(ip, a.port);
    if (out.endpoints.empty()) out.problem = "interface '" + a.host + "' has no address";
  } else {
    return false;
  }
  return true;
}

/// Blocks for as long as the name service does.
inline resolution ask_name_service(const address& a) {
  resolution out;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int status = getaddrinfo(a.host.c_str(), nullptr, &hints, &list);
  if (status != 0) {
    std::string names;
    local_addresses(a.host, &names);
    out.problem = "cannot resolve '" + a.host + "' of " + to_string(a) + ": " + gai_strerror(status) +
                  "; nor is it an interface of this machine (" + names +
                  "): check the spelling, or give the address as a number";
    return out;
  }
  for (const addrinfo* i = list; i; i = i->ai_next) {
    endpoint e(i->ai_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), 0);
    if (i->ai_addrlen > e.capacity()) continue;
    std::memcpy(e.data(), i->ai_addr, i->ai_addrlen);
    e.port(a.port);
    out.endpoints.push_back(e);
  }
  freeaddrinfo(list);
  if (out.endpoints.empty()) out.problem = "'" + a.host + "' has no address";
  return out;
}

/// A question to the name service, on a detached thread that shares only this.
class question {
 public:
  explicit question(const address& a) : state_(std::make_shared<shared>()) {
    std::thread([state = state_, a] {
      state->answer = ask_name_service(a);
      state->done.store(true, std::memory_order_release);
    }).detach();
  }
  bool answered() const { return state_->done.load(std::memory_order_acquire); }
  resolution take() { return std::move(state_->answer); }

 private:
  struct shared {
    resolution answer;
    std::atomic<bool> done{false};
  };
  std::shared_ptr<shared> state_;
};

/// Waits at most `timeout`. Error: network.
inline std::vector<endpoint> resolve_now(const address& a, nanoseconds timeout) {
  resolution r;
  if (!resolve_locally(a, r)) {
    question q(a);
    const nanoseconds deadline = machine_clock::read() + timeout;
    while (!q.answered()) {
      if (machine_clock::read() > deadline)
        fail(errc::network, "waited ", timeout / millisecond, " ms for the name service to resolve '", a.host, "' of ",
             to_string(a), ": give the address as a number");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    r = q.take();
  }
  if (!r.problem.empty()) fail(errc::network, r.problem);
  return std::move(r.endpoints);
}

}  // namespace detail
}  // namespace fusionllm::inline v0
