// SPDX-License-Identifier: Apache-2.0
// What the protocol sees of the network: transports that listen and connect, connections that carry messages. All
// callbacks come from the transport's reactor and never from inside a call to this interface.
//
//   struct peer : fl::connection_handler {
//     void on_open(fl::connection& c) override {                       // both sides have agreed on the hello
//       fl::outgoing m;
//       m.header = {.kind = fl::frame_kind::activation, .step = 7, .edge = 3};
//       m.parts = {std::as_bytes(std::span(tensor))};                  // stays untouched until on_sent(c, 42)
//       m.level = fl::priority::tensor, m.tag = 42;
//       c.send(std::move(m));
//     }
//     std::span<std::byte> place(fl::connection&, const fl::frame_header& h) override {
//       return h.kind == fl::frame_kind::activation ? slot_for(h) : std::span<std::byte>{};  // {}: a bounded buffer
//     }
//     void on_message(fl::connection&, const fl::frame_header& h, std::span<const std::byte> payload) override;
//     void on_closed(fl::connection& c, const fl::error& why) override;   // exactly once; names the peer
//   };
//   fl::asio_reactor loop;                                                // or fl::virtual_network's nodes
//   fl::asio_tcp tcp(loop, {.self = {.run = "r", .token = "t", .name = "a"}});
//   fl::address bound = tcp.listen(fl::parse_address("127.0.0.1:0"), handler);
//   auto c = tcp.connect({.to = fl::parse_address("127.0.0.1:4000"), .whom = "broker"}, handler);
//   loop.run();
//
// A connection, and what holds one, must not outlive the reactor. A transport that goes ends its connections silently.
#pragma once

#include <memory>

#include "address.hpp"
#include "hello.hpp"
#include "outbox.hpp"
#include "reactor.hpp"

namespace fusionllm::inline v0 {

class connection;
class line;

/// Receives the events of connections. Must outlive them, or its transport. An `error` thrown from place() or
/// on_message() closes the connection with it.
class connection_handler {
 public:
  virtual ~connection_handler() = default;

  /// For a side that accepts: why it will not have this peer (which is told); empty to let it in.
  virtual std::string refusal(const hello& remote) { return (void)remote, std::string(); }
  /// Both sides have agreed; remote() is known.
  virtual void on_open(connection& c) = 0;
  /// A message begins: memory of exactly `h.total_length` bytes for it, valid until on_message or on_closed, or none.
  virtual byte_span place(connection& c, const frame_header& h) { return (void)c, (void)h, byte_span{}; }
  /// A whole message, checked. `payload` is the placed memory, or a buffer that is gone after the call.
  virtual void on_message(connection& c, const frame_header& h, const_byte_span payload) = 0;
  /// The message's memory may be used again. It has left, which does not mean that it has arrived.
  virtual void on_sent(connection& c, u64 tag) { (void)c, (void)tag; }
  /// The end, once for each connect() and each on_open(). Code ok: an orderly close() by either side. Memory of
  /// messages sent or placed is free again.
  virtual void on_closed(connection& c, const error& why) = 0;
  /// A side that accepts turned someone away (code handshake, protocol, timeout, resource).
  virtual void on_rejected(const error& why) { (void)why; }
};

/// Counts of one connection, both directions, heartbeats and handshake included.
struct connection_statistics {
  u64 messages_sent = 0, messages_received = 0;
  u64 frames_sent = 0, frames_received = 0;
  u64 raw_sent = 0, raw_received = 0;          ///< bytes of payloads before compression
  u64 payload_sent = 0, payload_received = 0;  ///< bytes of payloads as sent
  u64 wire_sent = 0, wire_received = 0;        ///< payloads and headers
  nanoseconds busy_sending = 0;                ///< time in which a frame was on its way out
};

class connection {
 public:
  virtual ~connection() = default;

  /// Queues a message. False, and nothing is kept, when the connection is not open. Error: resource, when more than
  /// `transport_options::send_queue` messages wait.
  virtual bool send(outgoing m) = 0;
  /// Sends what is queued, then the code and the reason, then ends; on_closed follows within `close_timeout`.
  virtual void close(errc code = errc::ok, std::string reason = "finished") = 0;
  /// Ends at once; the other side sees a lost connection. on_closed follows with `code`.
  virtual void abort(errc code, std::string reason) = 0;

  virtual const hello& remote() const = 0;  ///< of the other side, once open
  /// For messages: "peer 'b' (127.0.0.1:4000)".
  virtual std::string label() const = 0;
  virtual bool is_open() const = 0;
  virtual connection_statistics statistics() const = 0;
  virtual std::size_t queued() const = 0;  ///< messages not wholly sent

  /// From now on events go to `h`.
  virtual void set_handler(connection_handler& h) = 0;
  /// From now on what this side sends occupies `on` and arrives `latency` later.
  virtual void pace(std::shared_ptr<line> on, nanoseconds latency) = 0;

  /// Keeps the object (not the connection) alive.
  virtual std::shared_ptr<connection> shared() = 0;

  u64 user = 0;  ///< the protocol's own, such as an index
};

using connection_ptr = std::shared_ptr<connection>;

struct dial {
  address to = {};
  std::string whom = {};               ///< for messages: who should be there
  nanoseconds timeout = 5 * second;  ///< for all of it: name, connection, handshake
  bool retry = false;                ///< keep trying while nobody listens there
};

/// Every bound on waiting and memory, with its default.
struct transport_options {
  hello self = {};
  frame_limits frames = {};
  u64 buffer_cap = 16 << 20;                 ///< bytes of unfinished messages without memory, per connection
  std::size_t open_messages = 256;           ///< unfinished messages, per connection
  std::size_t send_queue = 65536;            ///< messages, per connection
  nanoseconds chunk_time = 20 * millisecond; ///< chunks are cut so that one takes no longer
  nanoseconds handshake_timeout = 900 * millisecond;  ///< for a side that accepts
  nanoseconds stall_timeout = 30 * second;   ///< for a frame that does not move on, in or out
  nanoseconds close_timeout = 5 * second;
  std::size_t half_open = 256;               ///< accepted connections in their handshake; the oldest makes room
  unsigned version = wire_version;
  // sockets only
  bool insecure_network = false;             ///< bind and dial beyond loopback, unencrypted
  address announce = {};                       ///< what others should dial; default: where it listens
  nanoseconds resolve_timeout = 3 * second;
};

/// Error: config, when the options make no sense.
inline transport_options checked(transport_options o) {
  if (o.frames.frame_cap < 1024 || o.frames.frame_cap > (u64(1) << 30))
    fail(errc::config, "frame cap is ", o.frames.frame_cap, " bytes, expected 1 KiB to 1 GiB");
  if (o.half_open == 0 || o.open_messages == 0 || o.send_queue == 0)
    fail(errc::config, "half_open, open_messages and send_queue must be at least 1");
  (void)encode(o.self);
  return o;
}

class transport {
 public:
  virtual ~transport() = default;
  virtual reactor& loop() = 0;
  /// Listens and gives the address, with the real port. Accepted connections send their events to `h`. Error: network.
  virtual address listen(const address& bind, connection_handler& h) = 0;
  /// Starts to connect. Failure comes as on_closed, within the timeout.
  virtual connection_ptr connect(dial d, connection_handler& h) = 0;
  /// Stops listening; open connections stay.
  virtual void stop_listening() = 0;
};

}  // namespace fusionllm::inline v0
