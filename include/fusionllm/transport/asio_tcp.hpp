// SPDX-License-Identifier: Apache-2.0
// The transport over Asio sockets. Binds exactly what it was asked to bind, and beyond loopback only when the options
// say `insecure_network` or the stream encrypts.
#pragma once

#include <asio/ip/v6_only.hpp>

#include "../core/seat.hpp"
#include "asio_reactor.hpp"
#include "asio_session.hpp"
#include "session_set.hpp"

namespace fusionllm::inline v0 {

template <class Stream>
class basic_asio_tcp final : public transport, private detail::session_set {
 public:
  using seat = transport_seat;
  using context = typename Stream::context;

  /// Errors: config.
  basic_asio_tcp(asio_reactor& r, transport_options options, context c = {})
      : session_set(options.half_open),
        reactor_(r),
        options_(std::make_shared<const transport_options>(checked(std::move(options)))),
        context_(std::move(c)) {}
  ~basic_asio_tcp() override {
    stop_listening();
    orphan_all();
  }

  reactor& loop() override { return reactor_; }

  address listen(const address& bind, connection_handler& h) override {
    std::vector<detail::endpoint> ends = detail::resolve_now(bind, options_->resolve_timeout);
    if (bind.host != "localhost") ends.resize(1);
    for (const auto& e : ends) allow(e, bind, "bind");
    std::vector<std::shared_ptr<listener>> bound;
    for (int attempt = 0; bound.empty(); ++attempt) bound = bind_all(ends, bind, h, attempt);
    for (auto& l : bound) {
      listeners_.push_back(l);
      accept(l);
    }
    return detail::address_of(bound.front()->where);
  }
  /// No connection is open, on its way or ending.
  bool quiet() const { return all().empty(); }
  void stop_listening() override {
    for (auto& l : std::exchange(listeners_, {})) {
      asio::error_code ignored;
      l->open = false;
      l->acceptor.close(ignored);
      reactor_.cancel(l->pause);
    }
  }

  connection_ptr connect(dial d, connection_handler& h) override {
    auto s = std::make_shared<session_type>(reactor_.context(), context_, reactor_, options_, owner(), h,
                                            side::connecting, to_string(d.to), d.whom);
    add(s);
    s->expect_open(d.timeout, "its name was not resolved");
    auto c = std::make_shared<call>();
    c->session = s;
    c->what = std::move(d);
    if (detail::resolve_locally(c->what.to, c->found)) {
      reactor_.post([this, c] { resolved(c); });
    } else {
      ask(c, std::make_shared<detail::question>(c->what.to));
    }
    return s;
  }

 private:
  using session_type = detail::asio_session<Stream>;
  using acceptor_type = asio::ip::tcp::acceptor;
  struct listener {
    acceptor_type acceptor;
    connection_handler* handler;
    detail::endpoint where;
    bool open = true;
    timer_id pause;
  };
  struct call {
    std::weak_ptr<session_type> session;
    dial what;
    detail::resolution found;
    std::size_t next = 0;
    std::string tried;
    bool refused = false;
  };
  using call_ptr = std::shared_ptr<call>;
  static constexpr nanoseconds retry_after = 50 * millisecond;

  detail::session_owner& owner() { return *this; }

  void allow(const detail::endpoint& e, const address& asked, const char* verb) const {
    if (Stream::encrypted || options_->insecure_network || e.address().is_loopback()) return;
    fail(errc::network, "will not ", verb, ' ', to_string(detail::address_of(e)), " (asked for ", to_string(asked),
         "): it is not a loopback address and the traffic would not be encrypted; use 127.0.0.1 or localhost, or say "
         "--insecure-network on a network that you trust");
  }

  // listening
  std::vector<std::shared_ptr<listener>> bind_all(const std::vector<detail::endpoint>& ends, const address& asked,
                                                  connection_handler& h, int attempt) {
    std::vector<std::shared_ptr<listener>> bound;
    for (detail::endpoint e : ends) {
      if (!bound.empty()) e.port(bound.front()->where.port());
      auto l = std::make_shared<listener>(listener{acceptor_type(reactor_.context()), &h, e, true, {}});
      asio::error_code failed;
      l->acceptor.open(e.protocol(), failed);
      if (!failed) l->acceptor.set_option(acceptor_type::reuse_address(true), failed);
      if (!failed && e.protocol() == asio::ip::tcp::v6()) l->acceptor.set_option(asio::ip::v6_only(true), failed);
      if (!failed) l->acceptor.bind(e, failed);
      if (!failed) l->acceptor.listen(asio::socket_base::max_listen_connections, failed);
      if (!failed) {
        l->where = l->acceptor.local_endpoint(failed);
        bound.push_back(std::move(l));
        continue;
      }
      // A machine without IPv6 has a localhost all the same; a port free in one family may be taken in the other.
      const bool no_family = failed == asio::error::address_family_not_supported ||
                             failed.value() == EADDRNOTAVAIL;
      if (!bound.empty() && no_family) continue;
      if (!bound.empty() && asked.port == 0 && failed == asio::error::address_in_use && attempt < 16) return {};
      cannot_bind(e, asked, failed);
    }
    return bound;
  }
  [[noreturn]] static void cannot_bind(const detail::endpoint& e, const address& asked, const asio::error_code& why) {
    std::string remedy = ": " + why.message();
    if (why == asio::error::address_in_use) {
      remedy = ": port " + std::to_string(e.port()) + " is in use; choose another port, or 0 for any free one";
    } else if (why.value() == EADDRNOTAVAIL) {
      remedy = ": this machine has no such address; it has ";
      for (const auto& a : detail::local_addresses("")) remedy += a.to_string() + " ";
    } else if (why == asio::error::access_denied) {
      remedy += "; ports below 1024 need privileges, choose another";
    }
    const bool scarce = why.value() == EMFILE || why.value() == ENFILE || why.value() == ENOBUFS || why.value() == ENOMEM;
    if (scarce) remedy += "; raise the limit (ulimit -n), or close what holds them";
    fail(scarce ? errc::resource : errc::network, "cannot bind ", to_string(detail::address_of(e)), " (asked for ", to_string(asked), ")",
         remedy);
  }
  void accept(const std::shared_ptr<listener>& l) {
    auto s = std::make_shared<session_type>(reactor_.context(), context_, reactor_, options_, owner(), *l->handler,
                                            side::accepting, std::string(), std::string());
    l->acceptor.async_accept(s->socket(), [this, l, s](const asio::error_code& failed) {
      if (!l->open) return;
      if (failed) return accept_later(l, failed);
      asio::error_code gone;
      const detail::endpoint from = s->socket().remote_endpoint(gone);
      if (!gone) {
        s->set_where(to_string(detail::address_of(from)));
        s->expect_open(options_->handshake_timeout, "it sent no hello");
        add(s);
        s->start();
      }
      accept(l);
    });
  }
  /// Out of descriptors, or the like: those who wait stay in the backlog.
  void accept_later(const std::shared_ptr<listener>& l, const asio::error_code& why) {
    if (why != asio::error::connection_aborted)
      l->handler->on_rejected(error(errc::resource, "cannot accept on " + to_string(detail::address_of(l->where)) +
                                                        ": " + why.message() + "; trying again"));
    l->pause = reactor_.after(100 * millisecond, [this, l] {
      if (l->open) accept(l);
    });
  }

  // connecting
  static bool over(const call_ptr& c) {
    const auto s = c->session.lock();
    return !s || s->is_ended();
  }
  void ask(const call_ptr& c, std::shared_ptr<detail::question> q) {
    reactor_.after(millisecond, [this, c, q] {
      if (over(c)) return;
      if (!q->answered()) return ask(c, q);
      c->found = q->take();
      resolved(c);
    });
  }
  void resolved(const call_ptr& c) {
    if (over(c)) return;
    const auto s = c->session.lock();
    if (!c->found.problem.empty()) return s->lost(errc::network, c->found.problem);
    s->waits_for("no answer to the connection");
    try {
      for (const auto& e : c->found.endpoints) allow(e, c->what.to, "connect to");
    } catch (const error& e) {
      return s->lost(e.code(), e.what());
    }
    try_next(c);
  }
  void try_next(const call_ptr& c) {
    if (over(c)) return;
    const auto s = c->session.lock();
    asio::error_code ignored, failed;
    s->socket().close(ignored);
    if (c->next == c->found.endpoints.size()) return give_up(c, *s);
    const detail::endpoint e = c->found.endpoints[c->next++];
    s->socket().open(e.protocol(), failed);
    if (failed) return note(c, e, failed);
    const nanoseconds share = c->what.timeout / nanoseconds(c->found.endpoints.size());
    const timer_id bound = reactor_.after(share, [c] {
      if (over(c)) return;
      asio::error_code closed;
      c->session.lock()->socket().close(closed);
    });
    s->socket().async_connect(e, [this, c, s, e, bound](const asio::error_code& why) {
      if (s->is_ended()) return;
      reactor_.cancel(bound);
      asio::error_code gone;
      if (why) return note(c, e, why);
      // On loopback a socket can connect to itself when its own port happens to be the one that it dials.
      if (s->socket().local_endpoint(gone) == e) return note(c, e, asio::error::connection_refused);
      s->set_where(to_string(detail::address_of(e)));
      s->start();
    });
  }
  void note(const call_ptr& c, const detail::endpoint& e, const asio::error_code& why) {
    if (why == asio::error::connection_refused) c->refused = true;
    c->tried += (c->tried.empty() ? "" : "; ") + to_string(detail::address_of(e)) + " " +
                (why == asio::error::operation_aborted ? "did not answer" : why.message());
    try_next(c);
  }
  void give_up(const call_ptr& c, session_type& s) {
    if (!c->what.retry || !c->refused)
      return s.lost(errc::network, "cannot connect: " + c->tried +
                                       "; start the other side first, and check host, port and firewall");
    s.waits_for("nobody listens there (" + c->tried + ")");
    c->next = 0;
    c->tried.clear();
    reactor_.after(retry_after, [this, c] { try_next(c); });
  }

  // session_owner
  std::string announced(detail::session& s) override {
    address a = options_->announce;
    if (listeners_.empty()) return a.host.empty() || a.port == 0 ? std::string() : to_string(a);
    const detail::endpoint& where = listeners_.front()->where;
    if (a.port == 0) a.port = where.port();
    if (a.host.empty()) {
      asio::error_code gone;
      const bool any = where.address().is_unspecified();
      a.host = (any ? static_cast<session_type&>(s).socket().local_endpoint(gone) : where).address().to_string();
    }
    return to_string(a);
  }

  asio_reactor& reactor_;
  std::shared_ptr<const transport_options> options_;
  context context_;
  std::vector<std::shared_ptr<listener>> listeners_;
};

/// TCP without encryption.
using asio_tcp = basic_asio_tcp<tcp_stream>;

}  // namespace fusionllm::inline v0
