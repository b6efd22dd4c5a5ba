// SPDX-License-Identifier: Apache-2.0
// A session over an Asio stream. Payloads are written from, and read into, the memory of the messages. `Stream` is a
// policy: plain TCP here; TLS is another one.
#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include "asio_resolve.hpp"
#include "session.hpp"

namespace fusionllm::inline v0 {

/// Plain TCP. What another stream must offer: a `context` (certificates, ...), `encrypted`, the socket, the object that
/// Asio reads and writes, its own handshake (`async_start`), and the end of what this side sends.
class tcp_stream {
 public:
  struct context {};
  static constexpr bool encrypted = false;

  tcp_stream(asio::io_context& io, const context&) : socket_(io) {}
  asio::ip::tcp::socket& socket() { return socket_; }
  asio::ip::tcp::socket& io() { return socket_; }
  /// Calls f(asio::error_code) when application data may flow.
  template <class F>
  void async_start(bool connecting, F&& f) {
    (void)connecting;
    f(asio::error_code());
  }
  void end_sending() {
    asio::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
};

namespace detail {

template <class Stream>
class asio_session final : public session {
 public:
  asio_session(asio::io_context& io, const typename Stream::context& context, reactor& r,
               std::shared_ptr<const transport_options> options, session_owner& owner, connection_handler& h, side s,
               std::string where, std::string whom)
      : session(r, std::move(options), owner, h, s, std::move(where), std::move(whom)), stream_(io, context) {}

  asio::ip::tcp::socket& socket() { return stream_.socket(); }

  /// The socket is connected.
  void start() {
    asio::error_code ignored;
    socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    socket().set_option(asio::socket_base::keep_alive(false), ignored);
    // What sits unsent in the kernel cannot be overtaken by a heartbeat.
    const int unsent = 64 << 10;
    (void)setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    stream_.async_start(!accepted(), [self = myself()](const asio::error_code& failed) {
      if (self->is_ended()) return;
      if (failed) return self->broken(failed);
      self->established();
      self->read_prefix();
    });
  }

 protected:
  bool carrier_ready() override {
    if (!paced_line()) return first_ == air_.size() && !writing_;
    const u64 rate = paced_line()->bits_per_second();
    const u64 on_the_way = rate == 0 ? 64 << 20 : u64(latency() / microsecond) * (rate / 8) / 1'000'000;
    return air_bytes_ < on_the_way + 2 * options().frames.frame_cap + (64 << 10);
  }
  void depart(outgoing_chunk&& c, nanoseconds, nanoseconds release) override {
    air_bytes_ += c.bytes();
    air_.push_back({std::move(c), release});
    write_next();
  }
  void hang_up() override { stream_.end_sending(); }
  void cut_off() override {
    asio::error_code ignored;
    socket().close(ignored);
    if (release_timer_) loop().cancel(release_timer_);
    release_timer_ = {};
  }

 private:
  struct flight {
    outgoing_chunk frame;
    nanoseconds release;
  };
  std::shared_ptr<asio_session> myself() { return std::static_pointer_cast<asio_session>(shared_from_this()); }

  void broken(const asio::error_code& e) {
    lost(errc::peer_lost, e == asio::error::eof ? "the connection was lost: it ended without a goodbye"
                                                : "the connection was lost: " + e.message());
  }

  // out
  void write_next() {
    if (writing_ || first_ == air_.size()) return;
    const nanoseconds due = air_[first_].release - lead_;
    if (due > loop().now()) {
      if (!release_timer_)
        release_timer_ = loop().at(due, [weak = weak_from_this(), due] {
          if (const auto s = weak.lock()) static_cast<asio_session&>(*s).release(due);
        });
      return;
    }
    out_ = std::move(air_[first_++].frame);
    if (first_ == air_.size() || first_ == 256) {
      air_.erase(air_.begin(), air_.begin() + std::ptrdiff_t(first_));
      first_ = 0;
    }
    std::array<asio::const_buffer, outgoing::max_parts + 2> buffers;
    buffers[0] = asio::buffer(out_.header);
    for (std::size_t i = 0; i < out_.count; ++i) buffers[i + 1] = {out_.parts[i].data(), out_.parts[i].size()};
    writing_ = true;
    asio::async_write(stream_.io(), buffers, [self = myself()](const asio::error_code& failed, std::size_t) {
      self->writing_ = false;
      if (self->is_ended()) return;
      if (failed) return self->broken(failed);
      self->air_bytes_ -= self->out_.bytes();
      const outgoing_chunk gone = self->out_;
      self->departed(gone);
      if (!self->is_ended()) self->write_next();
    });
  }

  /// Timers fire late by a little that depends on the machine: later ones are set earlier by as much.
  void release(nanoseconds due) {
    release_timer_ = {};
    if (is_ended()) return;
    write_next();
    const nanoseconds late = (std::min)(loop().now() - due, most_lead);
    lead_ += (late - lead_) / 8;
  }

  // in
  template <class F>
  void read(asio::mutable_buffer into, F&& then) {
    asio::async_read(stream_.io(), into,
                     [self = myself(), then = std::forward<F>(then)](const asio::error_code& failed, std::size_t) {
                       if (self->is_ended()) return;
                       if (failed) return self->broken(failed);
                       then(*self);
                     });
  }
  /// The first bytes alone tell whether the other side speaks this protocol at all.
  void read_prefix() {
    read(asio::buffer(header_.data(), frame_prefix_bytes), [](asio_session& s) {
      if (!s.check_prefix({s.header_.data(), frame_prefix_bytes})) return s.drop_rest();
      s.read(asio::buffer(s.header_.data() + frame_prefix_bytes, frame_header_bytes - frame_prefix_bytes),
             [](asio_session& t) { t.read_chunk(); });
    });
  }
  void read_header() {
    read(asio::buffer(header_), [](asio_session& s) { s.read_chunk(); });
  }
  void read_chunk() {
    const auto memory = begin_frame(header_);
    if (!memory) return drop_rest();
    if (memory->empty()) return finish_chunk();
    read(asio::buffer(memory->data(), memory->size()), [](asio_session& s) { s.finish_chunk(); });
  }
  void finish_chunk() {
    if (end_frame()) read_header();
    else drop_rest();
  }
  void drop_rest() {
    if (is_ended()) return;
    if (rest_.empty()) rest_.resize(16 << 10);
    stream_.io().async_read_some(asio::buffer(rest_), [self = myself()](const asio::error_code& failed, std::size_t) {
      if (self->is_ended()) return;
      if (failed) return self->broken(failed);
      self->drop_rest();
    });
  }

  Stream stream_;
  encoded_header header_{};
  std::vector<std::byte> rest_;
  std::vector<flight> air_;
  std::size_t first_ = 0;
  u64 air_bytes_ = 0;
  outgoing_chunk out_{};
  bool writing_ = false;
  timer_id release_timer_;
  static constexpr nanoseconds most_lead = 150 * microsecond;
  nanoseconds lead_ = 0;
};

}  // namespace detail
}  // namespace fusionllm::inline v0
