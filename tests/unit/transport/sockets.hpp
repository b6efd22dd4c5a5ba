// SPDX-License-Identifier: Apache-2.0
// Two real ends on loopback in one thread, and a raw socket that says whatever a test wants.
#pragma once

#include <fusionllm/transport/asio_tcp.hpp>

#include <optional>
#include <string>

#include "recorder.hpp"

namespace fusionllm_test {

/// b listens, a connects; both live on one reactor.
struct two_sockets {
  explicit two_sockets(fl::transport_options oa = named("a"), fl::transport_options ob = named("b"),
                       const std::string& bind = "127.0.0.1:0") {
    b.emplace(loop, std::move(ob));
    a.emplace(loop, std::move(oa));
    where = b->listen(fl::parse_address(bind), at_b);
  }
  void connect() {
    link = a->connect({.to = where, .whom = "b"}, at_a);
    wait([&] { return (at_a.opened == 0 || at_b.opened == 0) && at_a.closed.empty(); });
  }
  template <class F>
  bool wait(F&& pending, fl::nanoseconds timeout = 10 * fl::second) {
    return loop.run_while(pending, timeout);
  }
  void run(fl::nanoseconds t) {
    loop.run_while([] { return true; }, t);
  }
  fl::asio_reactor loop;
  recorder at_a{loop}, at_b{loop};
  std::optional<fl::asio_tcp> a, b;
  fl::address where;
  fl::connection_ptr link;
};

/// Connects at once, then reads without blocking.
class raw_socket {
 public:
  raw_socket(fl::asio_reactor& loop, const fl::address& to) : loop_(loop), socket_(loop.context()) {
    socket_.connect({asio::ip::make_address(to.host), to.port});
    socket_.non_blocking(true);
  }
  void say(fl::const_byte_span bytes) { socket_.send(asio::buffer(bytes.data(), bytes.size())); }
  void say(const std::string& text) { say(fl::bytes_of(text)); }
  /// Runs the loop until the other side closes or `timeout`; gives all that was read. `closed` tells which.
  std::string listen(fl::nanoseconds timeout) {
    std::string all;
    loop_.run_while(
        [&] {
          char buffer[4096];
          asio::error_code e;
          const std::size_t n = socket_.read_some(asio::buffer(buffer), e);
          all.append(buffer, n);
          if (e && e != asio::error::would_block) closed = true;
          loop_.after(fl::millisecond, [] {});
          return !closed;
        },
        timeout);
    return all;
  }
  void close() { socket_.close(); }
  bool closed = false;

 private:
  fl::asio_reactor& loop_;
  asio::ip::tcp::socket socket_;
};

}  // namespace fusionllm_test
