// SPDX-License-Identifier: Apache-2.0
// The part of a connection that is the same over sockets and in one process: handshake, queue, chunks, reassembly,
// bounded waits, the orderly end. A carrier below it moves frames and reports what became of them.
//
// States: carrying nothing yet -> greeting (hello, welcome, ready) -> open -> closing (bye is queued) -> ended.
#pragma once

#include <optional>

#include "inbox.hpp"
#include "line.hpp"
#include "transport.hpp"

namespace fusionllm::inline v0 {
namespace detail {

class session;

/// The transport that a session belongs to.
class session_owner {
 public:
  virtual void opened(session& s) = 0;
  virtual void finished(session& s) = 0;
  /// What this side announces over `s`.
  virtual std::string announced(session& s) = 0;

 protected:
  ~session_owner() = default;
};

class session : public connection, public line_user, public std::enable_shared_from_this<session> {
 public:
  enum class side : u8 { connecting, accepting };

  session(reactor& r, std::shared_ptr<const transport_options> options, session_owner& owner, connection_handler& h, side s,
          std::string where, std::string whom)
      : reactor_(r),
        shared_options_(std::move(options)),
        options_(*shared_options_),
        owner_(&owner),
        handler_(&h),
        side_(s),
        where_(std::move(where)),
        whom_(std::move(whom)),
        outbox_(options_.version),
        inbox_({options_.buffer_cap, options_.open_messages}) {}
  ~session() override { leave_line(); }

  // connection
  bool send(outgoing m) override {
    if (state_ != state::open) return false;
    if (outbox_.size() >= options_.send_queue)
      fail(errc::resource, label(), ": ", outbox_.size(), " messages wait to be sent, the limit is ",
           options_.send_queue, ": wait for on_sent before sending more");
    if (m.size() > options_.frames.message_cap)
      fail(errc::resource, label(), ": a message of ", m.size(), " bytes is over the message cap of ",
           options_.frames.message_cap);
    outbox_.put(std::move(m), reactor_.now());
    pump();
    return true;
  }
  void close(errc code, std::string reason) override {
    if (state_ == state::closing || state_ == state::ended) return;
    if (state_ != state::open) return abort(code, std::move(reason));
    why_.emplace(code, label() + ": closed by this side: " + reason);
    say_bye(code, reason);
  }
  void abort(errc code, std::string reason) override {
    if (state_ != state::ended) end(error(code, label() + ": closed by this side: " + reason));
  }
  const hello& remote() const override { return remote_; }
  std::string label() const override {
    if (!remote_.name.empty())
      return (remote_.role.empty() ? "peer" : remote_.role) + " '" + remote_.name + "' (" + where_ + ")";
    return whom_.empty() ? where_ : "'" + whom_ + "' (" + where_ + ")";
  }
  bool is_open() const override { return state_ == state::open; }
  connection_statistics statistics() const override { return statistics_; }
  std::size_t queued() const override { return outbox_.size() + in_flight_; }
  std::shared_ptr<connection> shared() override { return shared_from_this(); }
  void set_handler(connection_handler& h) override { handler_ = &h; }
  void pace(std::shared_ptr<line> on, nanoseconds latency) override {
    leave_line();
    line_ = std::move(on);
    latency_ = latency;
    choose_chunk();
    pump();
  }

  // line_user
  chunk_key next_chunk() override {
    if (outbox_.empty() || state_ == state::idle || state_ == state::ended) return {};
    if (!carrier_ready()) return blocked_ = true, chunk_key{};
    chunk_key key = outbox_.head(chunk_);
    key.since = (std::max)(key.since, ready_since_);
    return key;
  }
  void grant(nanoseconds start, nanoseconds end) override {
    statistics_.busy_sending += end - start;
    launch(start, end, end + latency_);
    if (!outbox_.empty()) line_->want(*this);
  }

  // for the transport
  /// Bounds the wait for an open connection; `timeout` from now.
  void expect_open(nanoseconds timeout, std::string for_what) {
    waiting_for_ = std::move(for_what);
    set_deadline(timeout, [this, timeout] {
      const std::string what = "waited " + in_seconds(timeout) + " for " + label() + ": " + waiting_for_;
      turn_away(error(errc::timeout, what), what);
    });
  }
  void waits_for(std::string what) { waiting_for_ = std::move(what); }
  /// The transport goes away: nothing is reported any more.
  void orphan() {
    owner_ = nullptr;
    handler_ = nullptr;
    if (state_ == state::ended) return;
    state_ = state::ended;
    stop_timers();
    leave_line();
    cut_off();
  }
  /// Ends for `why`, and tells the other side `reason`.
  void turn_away(error why, const std::string& reason) {
    if (state_ == state::closing || state_ == state::ended) return;
    if (state_ == state::idle) return end(std::move(why));
    outbox_.clear();
    why_.emplace(why);
    say_bye(why.code(), reason);
  }
  bool accepted() const { return side_ == side::accepting; }
  bool is_ended() const { return state_ == state::ended; }
  void set_where(std::string where) { where_ = std::move(where); }
  const std::string& where() const { return where_; }

  /// The carrier connects the two sides: the greeting begins.
  void established() {
    if (state_ != state::idle) return;
    state_ = state::greeting;
    if (side_ == side::connecting) {
      waiting_for_ = "it accepted the connection and sent no welcome";
      greet(frame_kind::hello);
    }
  }
  /// The carrier cannot go on. Ends the session, whatever its state.
  void lost(errc code, const std::string& reason) {
    if (state_ == state::ended) return;
    if (state_ == state::closing && (bye_left_ || why_->code() != errc::ok)) return end(error(*why_));
    end(error(code, label() + ": " + reason));
  }

 protected:
  // what a carrier does
  /// May depart() be called now?
  virtual bool carrier_ready() = 0;
  /// Sends a frame, not before `release`. It has left the line at `left`. Reports departed(), never inside this call.
  virtual void depart(outgoing_chunk&& c, nanoseconds left, nanoseconds release) = 0;
  /// The last frame has left: let the other side see the end, wait a bounded time for its end, then lost().
  virtual void hang_up() = 0;
  /// Stop at once; call nothing any more.
  virtual void cut_off() = 0;

  // what a carrier reports
  void departed(const outgoing_chunk& c) {
    if (state_ == state::ended) return;
    const nanoseconds now = reactor_.now();
    --in_flight_;
    ++statistics_.frames_sent;
    statistics_.payload_sent += c.decoded.chunk_length;
    statistics_.wire_sent += c.bytes();
    if (!line_) statistics_.busy_sending += now - last_out_;
    last_out_ = now;
    if (c.last) {
      ++statistics_.messages_sent;
      statistics_.raw_sent += c.decoded.raw_length;
      const u64 tag = outbox_.release(c);
      if (c.decoded.kind == frame_kind::bye) {
        bye_left_ = true;
        const nanoseconds linger = opened_ ? second : 100 * millisecond;
        set_deadline((std::min)(options_.close_timeout, linger), [this] { lost(errc::ok, "the end was not answered"); });
        hang_up();
      } else if (c.decoded.kind >= frame_kind::application && handler_) {
        handler_->on_sent(*this, tag);
      }
    }
    resume_carrier();
    watch();
    pump();
  }
  /// The carrier may be ready again.
  void resume_carrier() {
    if (!blocked_ || state_ == state::ended || !carrier_ready()) return;
    blocked_ = false;
    ready_since_ = reactor_.now();
    pump();
  }
  /// Checks a header. Gives the place for its chunk, or nothing: then the carrier drops whatever still comes.
  std::optional<byte_span> begin_frame(const encoded_header& header) {
    if (state_ != state::greeting && state_ != state::open) return std::nullopt;
    std::optional<byte_span> memory;
    guarded([&] {
      frame_limits limits = options_.frames;
      if (state_ == state::greeting) limits = {greeting_chunk, hello_cap};
      incoming_ = decode_frame(header, limits, options_.version);
      incoming_header_ = header;
      if (state_ == state::greeting && incoming_.kind >= frame_kind::application)
        fail(errc::protocol, "a frame of kind ", unsigned(incoming_.kind), " before the handshake was over");
      last_in_ = reactor_.now();
      memory_ = inbox_.open(incoming_, [&](const frame_header& h) {
        return h.kind >= frame_kind::application ? handler_->place(*this, h) : byte_span{};
      });
      if (state_ == state::greeting || state_ == state::open) memory = memory_;
    });
    watch();
    return memory;
  }
  /// The chunk of the last begin_frame() is in its place. False: the carrier drops whatever still comes.
  bool end_frame() {
    if (state_ != state::greeting && state_ != state::open) return false;
    guarded([&] {
      verify_frame(incoming_header_, memory_);
      last_in_ = reactor_.now();
      ++statistics_.frames_received;
      statistics_.payload_received += incoming_.chunk_length;
      statistics_.wire_received += frame_header_bytes + incoming_.chunk_length;
      if (!inbox_.commit(incoming_)) return;
      const frame_header h = incoming_;
      ++statistics_.messages_received;
      statistics_.raw_received += h.raw_length;
      dispatch(h, inbox_.payload(h));
      inbox_.close(h);
    });
    watch();
    return state_ == state::greeting || state_ == state::open;
  }
  /// The first bytes of the other side, as soon as they are there: false when it speaks something else.
  bool check_prefix(const_byte_span first) {
    return guarded([&] { check_frame_prefix(first, options_.version); });
  }
  reactor& loop() const { return reactor_; }
  nanoseconds latency() const { return latency_; }
  const std::shared_ptr<line>& paced_line() const { return line_; }
  const transport_options& options() const { return options_; }

 private:
  enum class state : u8 { idle, greeting, open, closing, ended };
  static constexpr u64 greeting_chunk = 4096;
  static constexpr u64 least_chunk = 1024;

  static std::string in_seconds(nanoseconds t) {
    const i64 ms = t / millisecond;
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
  }

  template <class F>
  bool guarded(F&& f) {
    const auto keep = shared_from_this();
    try {
      f();
      return true;
    } catch (const error& e) {
      turn_away(error(e.code(), label() + ": " + e.what()), e.what());
      return false;
    }
  }

  void pump() {
    if (outbox_.empty() || state_ == state::idle || state_ == state::ended) return;
    if (line_) return line_->want(*this);
    while (!outbox_.empty() && carrier_ready()) launch(reactor_.now(), reactor_.now(), reactor_.now() + latency_);
  }
  void launch(nanoseconds start, nanoseconds left, nanoseconds release) {
    if (in_flight_++ == 0) last_out_ = (std::max)(start, reactor_.now());
    depart(outbox_.take(chunk_), left, release);
    watch();
  }
  void put(frame_kind kind, std::vector<std::byte> payload, priority level) {
    outgoing m;
    m.header.kind = kind;
    m.owned = std::move(payload);
    m.level = level;
    m.deadline = INT64_MIN;  // before any message of the caller
    outbox_.put(std::move(m), reactor_.now());
    pump();
  }

  // handshake
  void greet(frame_kind kind) {
    hello mine = options_.self;
    mine.frame_cap = options_.frames.frame_cap;
    if (owner_ && mine.announce.empty()) mine.announce = owner_->announced(*this);
    put(kind, encode(mine), priority::control);
  }
  void meet(const_byte_span payload) {
    hello theirs = decode_hello(payload);
    if (const auto differs = difference(options_.self, theirs)) fail(errc::handshake, *differs);
    if (theirs.frame_cap < least_chunk)
      fail(errc::handshake, "frame cap at '", theirs.name, "' is ", theirs.frame_cap, ", the least is ", least_chunk);
    if (!theirs.announce.empty()) {
      const std::size_t colon = where_.rfind(':');
      check_announced(parse_address(theirs.announce), where_host(colon));
    }
    remote_ = std::move(theirs);
    remote_.token.clear();
  }
  std::string_view where_host(std::size_t colon) const {
    std::string_view host = std::string_view(where_).substr(0, colon);
    if (!host.empty() && host.front() == '[') host = host.substr(1, host.size() - 2);
    return host;
  }
  void dispatch(const frame_header& h, const_byte_span payload) {
    if (h.kind == frame_kind::bye) return said_bye(payload);
    if (state_ == state::open) {
      if (h.kind < frame_kind::application)
        fail(errc::protocol, "a frame of kind ", unsigned(h.kind), " after the handshake");
      return handler_->on_message(*this, h, payload);
    }
    const bool accepts = side_ == side::accepting;
    if (accepts && h.kind == frame_kind::hello && remote_.frame_cap == 0) {
      meet(payload);
      const std::string no = handler_->refusal(remote_);
      if (!no.empty()) fail(errc::handshake, no);
      waiting_for_ = "it sent its hello and did not confirm the welcome";
      return greet(frame_kind::welcome);
    }
    if (accepts && h.kind == frame_kind::ready && remote_.frame_cap != 0) return open();
    if (!accepts && h.kind == frame_kind::welcome) {
      meet(payload);
      put(frame_kind::ready, {}, priority::control);
      return open();
    }
    fail(errc::protocol, "a frame of kind ", unsigned(h.kind), " out of turn in the handshake");
  }
  void open() {
    state_ = state::open;
    opened_ = true;
    clear_deadline();
    choose_chunk();
    if (owner_) owner_->opened(*this);
    handler_->on_open(*this);
  }
  void choose_chunk() {
    if (remote_.frame_cap == 0 || state_ != state::open) return;
    chunk_ = (std::min)(options_.frames.frame_cap, remote_.frame_cap);
    if (line_) chunk_ = paced_chunk(line_->bits_per_second(), options_.chunk_time, chunk_);
  }

  // ends
  void say_bye(errc code, const std::string& reason) {
    state_ = state::closing;
    set_deadline(options_.close_timeout, [this] { lost(errc::timeout, "took nothing while the connection closed"); });
    byte_writer w;
    w.number(u32(code)).text(std::string_view(reason).substr(0, 1000));
    put(frame_kind::bye, w.take(), priority::last);
  }
  void said_bye(const_byte_span payload) {
    byte_reader r(payload);
    const u32 code = r.number<u32>("bye: code");
    const std::string reason = printable(r.text(1000, "bye: reason"), 1000);
    const char* did = state_ == state::greeting ? " refused the connection: " : " closed the connection: ";
    end(error(code <= u32(errc::resource) || code == u32(errc::interrupted) ? errc(code) : errc::protocol,
              label() + did + reason));
  }
  void end(error why) {
    state_ = state::ended;
    why_.emplace(std::move(why));
    stop_timers();
    leave_line();
    outbox_.clear();
    cut_off();
    reactor_.post([self = shared_from_this()] { self->report(); });
  }
  void report() {
    inbox_.clear();
    if (connection_handler* h = handler_) {
      if (side_ == side::connecting || opened_) h->on_closed(*this, *why_);
      else h->on_rejected(*why_);
    }
    if (owner_) owner_->finished(*this);
  }

  // bounded waits
  template <class F>
  void set_deadline(nanoseconds timeout, F&& f) {
    clear_deadline();
    deadline_ = reactor_.after(timeout, [weak = weak_from_this(), run = std::forward<F>(f), this]() mutable {
      if (const auto keep = weak.lock()) {
        deadline_ = {};
        run();
      }
    });
  }
  void clear_deadline() {
    if (deadline_) reactor_.cancel(deadline_);
    deadline_ = {};
  }
  void stop_timers() {
    clear_deadline();
    if (stall_) reactor_.cancel(stall_);
    stall_ = {};
  }
  void leave_line() {
    if (line_) line_->forget(*this);
  }
  /// Keeps a timer while a frame or message is under way in either direction.
  void watch() {
    const bool busy = state_ != state::ended && (in_flight_ != 0 || !inbox_.empty());
    if (busy == bool(stall_)) return;
    if (!busy) {
      reactor_.cancel(stall_);
      stall_ = {};
      return;
    }
    arm_stall(reactor_.now() + options_.stall_timeout);
  }
  void arm_stall(nanoseconds when) {
    stall_ = reactor_.at(when, [weak = weak_from_this(), this] {
      if (const auto keep = weak.lock()) {
        stall_ = {};
        check_stall();
      }
    });
  }
  void check_stall() {
    const nanoseconds now = reactor_.now(), bound = options_.stall_timeout;
    if (in_flight_ != 0 && now - last_out_ >= bound)
      return lost(errc::timeout, "took nothing of a frame for " + in_seconds(bound));
    if (!inbox_.empty() && now - last_in_ >= bound)
      return lost(errc::timeout, "sent nothing of an unfinished message for " + in_seconds(bound));
    const nanoseconds oldest = in_flight_ == 0 ? last_in_ : inbox_.empty() ? last_out_ : (std::min)(last_in_, last_out_);
    if (in_flight_ != 0 || !inbox_.empty()) arm_stall(oldest + bound);
  }

  reactor& reactor_;
  std::shared_ptr<const transport_options> shared_options_;
  const transport_options& options_;
  session_owner* owner_;
  connection_handler* handler_;
  side side_;
  state state_ = state::idle;
  std::string where_, whom_, waiting_for_;
  outbox outbox_;
  inbox inbox_;
  hello remote_;
  std::optional<error> why_;
  connection_statistics statistics_;
  std::shared_ptr<line> line_;
  nanoseconds latency_ = 0;
  u64 chunk_ = greeting_chunk;
  std::size_t in_flight_ = 0;
  bool bye_left_ = false, blocked_ = false, opened_ = false;
  nanoseconds last_out_ = 0, last_in_ = 0, ready_since_ = 0;
  timer_id deadline_, stall_;
  frame_header incoming_;
  encoded_header incoming_header_{};
  byte_span memory_;
};

}  // namespace detail
}  // namespace fusionllm::inline v0
