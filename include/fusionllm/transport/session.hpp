// SPDX-License-Identifier: Apache-2.0
// The part of a connection that is the same over sockets and in one process: handshake, queue, chunks, reassembly,
// bounded waits, the orderly end. A carrier below it moves frames and reports what became of them.
//
// States: carrying nothing yet -> greeting (hello, welcome, ready) -> open -> closing (bye is queued) -> ended.
#pragma once

#include <optional>

#include "bounded_wait.hpp"
#include "handshake.hpp"
#include "inbox.hpp"
#include "line.hpp"
#include "stall_watch.hpp"

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
  session(reactor& r, std::shared_ptr<const transport_options> options, session_owner& owner,
          connection_handler& h, side s, std::string where, std::string whom)
      : reactor_(r),
        shared_options_(std::move(options)),
        options_(*shared_options_),
        owner_(&owner),
        handler_(&h),
        side_(s),
        where_(std::move(where)),
        whom_(std::move(whom)),
        handshake_(s, options_),
        outbox_(options_.version),
        inbox_({options_.buffer_cap, options_.open_messages}),
        deadline_(r),
        stall_(r, options_.stall_timeout) {}
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
  const hello& remote() const override { return handshake_.remote(); }
  std::string label() const override {
    if (const hello& h = remote(); !h.name.empty())
      return (h.role.empty() ? "peer" : h.role) + " '" + h.name + "' (" + where_ + ")";
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
    reply(handshake_.begin(announced()));
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
    if (!line_) {
      const nanoseconds took = now - stall_.last(stall_watch::direction::out);
      statistics_.busy_sending += took;
      adapt_chunk(took, c.decoded.chunk_length);
    }
    stall_.moved(stall_watch::direction::out, now);
    if (c.last) {
      ++statistics_.messages_sent;
      statistics_.raw_sent += c.decoded.raw_length;
      const u64 tag = outbox_.release(c);
      if (c.decoded.kind == frame_kind::bye) {
        bye_left_ = true;
        const nanoseconds linger = opened_ ? second : 100 * millisecond;
        set_deadline((std::min)(options_.close_timeout, linger),
                     [this] { lost(errc::ok, "the end was not answered"); });
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
      stall_.moved(stall_watch::direction::in, reactor_.now());
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
      stall_.moved(stall_watch::direction::in, reactor_.now());
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
  static constexpr u64 least_adapted_chunk = 8 << 10;

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
    if (in_flight_++ == 0) stall_.moved(stall_watch::direction::out, (std::max)(start, reactor_.now()));
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
  void reply(handshake::answer a) {
    if (a.say != frame_kind::application) put(a.say, std::move(a.payload), priority::control);
    waiting_for_ = handshake_.missing();
    if (a.open) open();
  }
  std::string announced() { return owner_ ? owner_->announced(*this) : std::string(); }
  std::string_view host() const {
    std::string_view host = std::string_view(where_).substr(0, where_.rfind(':'));
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
    reply(handshake_.take(h.kind, payload, host(), announced(),
                          [this](const hello& theirs) { return handler_->refusal(theirs); }));
  }
  void open() {
    state_ = state::open;
    opened_ = true;
    deadline_.cancel();
    choose_chunk();
    if (owner_) owner_->opened(*this);
    handler_->on_open(*this);
  }
  void choose_chunk() {
    if (state_ != state::open) return;
    most_chunk_ = (std::min)(options_.frames.frame_cap, remote().frame_cap);
    chunk_ = line_ ? paced_chunk(line_->bits_per_second(), options_.chunk_time, most_chunk_) : most_chunk_;
  }
  /// On a real slow link chunks shrink until one takes no longer than `chunk_time`, so that heartbeats get between.
  void adapt_chunk(nanoseconds took, u64 length) {
    if (state_ != state::open || length < chunk_) return;
    if (took > options_.chunk_time) chunk_ = (std::max)(chunk_ / 2, (std::min)(least_adapted_chunk, most_chunk_));
    else if (took < options_.chunk_time / 4) chunk_ = (std::min)(chunk_ * 2, most_chunk_);
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
    end(error(code <= u32(errc::diverged) || code == u32(errc::interrupted) ? errc(code) : errc::protocol,
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
    deadline_.until(reactor_.now() + timeout, std::forward<F>(f));
  }
  void stop_timers() {
    deadline_.cancel();
    stall_.cancel();
  }
  void leave_line() {
    if (line_) line_->forget(*this);
  }
  void watch() {
    const bool ended = state_ == state::ended;
    stall_.update(!ended && in_flight_ != 0, !ended && !inbox_.empty(), [this](stall_watch::direction d) {
      const char* what = d == stall_watch::direction::out ? "took nothing of a frame for "
                                                          : "sent nothing of an unfinished message for ";
      lost(errc::timeout, what + in_seconds(stall_.bound()));
    });
  }

  reactor& reactor_;
  std::shared_ptr<const transport_options> shared_options_;
  const transport_options& options_;
  session_owner* owner_;
  connection_handler* handler_;
  side side_;
  state state_ = state::idle;
  std::string where_, whom_, waiting_for_;
  handshake handshake_;
  outbox outbox_;
  inbox inbox_;
  std::optional<error> why_;
  connection_statistics statistics_;
  std::shared_ptr<line> line_;
  nanoseconds latency_ = 0;
  u64 chunk_ = greeting_chunk, most_chunk_ = greeting_chunk;
  std::size_t in_flight_ = 0;
  bool bye_left_ = false, blocked_ = false, opened_ = false;
  nanoseconds ready_since_ = 0;
  bounded_wait deadline_;
  stall_watch stall_;
  frame_header incoming_;
  encoded_header incoming_header_{};
  byte_span memory_;
};

}  // namespace detail
}  // namespace fusionllm::inline v0
