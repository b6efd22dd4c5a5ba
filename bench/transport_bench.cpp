// SPDX-License-Identifier: Apache-2.0
// The transport on loopback: throughput, round trip, and how far paced messages are from bytes / bandwidth + latency.
// Prints one table; the two ends are two threads.
#include <fusionllm/transport/asio_tcp.hpp>
#include <fusionllm/transport/paced.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace fl = fusionllm;

namespace {

fl::transport_options options(const char* name, std::size_t frame_cap) {
  fl::transport_options o;
  o.self.run = "bench";
  o.self.name = name;
  o.frames.frame_cap = frame_cap;
  return o;
}

/// Receives into one block of memory and sends heartbeats back.
struct echo : fl::connection_handler {
  std::vector<std::byte> memory;
  void on_open(fl::connection&) override {}
  fl::byte_span place(fl::connection&, const fl::frame_header& h) override {
    if (h.kind != fl::frame_kind::bulk) return {};
    if (memory.size() < h.total_length) memory.resize(std::size_t(h.total_length));
    return fl::byte_span(memory).first(std::size_t(h.total_length));
  }
  void on_message(fl::connection& c, const fl::frame_header& h, fl::const_byte_span) override {
    if (h.edge == 0) return;
    fl::outgoing m;
    m.header.kind = fl::frame_kind::heartbeat;
    c.send(std::move(m));
  }
  void on_closed(fl::connection&, const fl::error&) override {}
};

struct sender : fl::connection_handler {
  bool open = false, closed = false;
  int answers = 0;
  fl::nanoseconds answered_at = 0;
  fl::reactor* loop = nullptr;
  void on_open(fl::connection&) override { open = true; }
  void on_message(fl::connection&, const fl::frame_header&, fl::const_byte_span) override {
    ++answers;
    answered_at = loop->now();
  }
  void on_closed(fl::connection&, const fl::error& why) override {
    closed = true;
    if (why.code() != fl::errc::ok) std::fprintf(stderr, "%s\n", why.what());
  }
};

/// A listening end on its own thread, and this end with an optional paced link to it.
class two_ends {
 public:
  two_ends(std::size_t frame_cap, fl::link_spec link)
      : there_(there_loop_, options("there", frame_cap)),
        here_(loop, options("here", frame_cap)),
        links_(loop),
        slow_(here_, links_) {
    links_.set_default(link);
    const fl::address at = there_.listen({"127.0.0.1", 0}, echo_);
    thread_ = std::thread([this] { there_loop_.run(); });
    events.loop = &loop;
    connection = slow_.connect({.to = at}, events);
    loop.run_while([&] { return !events.open && !events.closed; }, 5 * fl::second);
    if (!events.open) std::exit(1);
  }
  ~two_ends() {
    there_loop_.stop();
    thread_.join();
  }
  /// Sends `bytes`, asking for an answer or not.
  void send(fl::const_byte_span bytes, bool ask) {
    fl::outgoing m;
    m.header.kind = fl::frame_kind::bulk;
    m.header.edge = ask ? 1 : 0;
    m.level = fl::priority::bulk;
    m.parts = {bytes};
    connection->send(std::move(m));
  }
  void await(int answers) {
    if (!loop.run_while([&] { return events.answers < answers && !events.closed; }, 120 * fl::second)) std::exit(1);
  }

  fl::asio_reactor loop;
  sender events;
  fl::connection_ptr connection;

 private:
  fl::asio_reactor there_loop_;
  echo echo_;
  fl::asio_tcp there_, here_;
  fl::paced_links links_;
  fl::paced slow_;
  std::thread thread_;
};

template <class T>
T median(std::vector<T> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void throughput(std::size_t message, std::size_t frame_cap) {
  two_ends ends(frame_cap, {});
  std::vector<std::byte> data(message, std::byte{1});
  std::vector<double> rates;
  const std::size_t count = std::clamp<std::size_t>((std::size_t(256) << 20) / message, 1, 40000);
  for (int round = 0; round < 5; ++round) {
    const fl::nanoseconds start = ends.loop.now();
    for (std::size_t i = 0; i < count; ++i) ends.send(data, i + 1 == count);
    ends.await(round + 1);
    rates.push_back(double(message * count) * 8 / double(ends.events.answered_at - start));
  }
  std::printf("throughput   message %8zu  frame cap %8zu   %6.1f Gbit/s\n", message, frame_cap, median(rates));
}

void round_trip() {
  two_ends ends(256 << 10, {});
  std::vector<std::byte> data(8);
  std::vector<double> times;
  for (int i = 0; i < 5000; ++i) {
    const fl::nanoseconds start = ends.loop.now();
    ends.send(data, true);
    ends.await(i + 1);
    times.push_back(double(ends.events.answered_at - start) / 1000);
  }
  std::printf("round trip   8 bytes   median %.1f us\n", median(times));
}

void pace(fl::u64 mbps, fl::nanoseconds latency, std::size_t message) {
  fl::transport_options defaults;
  two_ends ends(defaults.frames.frame_cap, {.latency = latency, .bits_per_second = mbps * 1'000'000});
  std::vector<std::byte> data(message, std::byte{1});
  std::vector<double> errors, millis;
  const fl::u64 chunk = fl::paced_chunk(mbps * 1'000'000, defaults.chunk_time, defaults.frames.frame_cap);
  const double modelled = double(latency) + double(fl::wire_bytes(message, chunk)) * 8e3 / double(mbps);
  const int rounds = modelled > 1e9 ? 1 : modelled > 1e8 ? 3 : 15;
  for (int i = 0; i < rounds; ++i) {
    const fl::nanoseconds start = ends.loop.now();
    ends.send(data, true);
    ends.await(i + 1);
    const double took = double(ends.events.answered_at - start);
    errors.push_back((took - modelled) / modelled * 100);
    millis.push_back(took / 1e6);
  }
  std::printf("paced  %5llu Mbit/s %5.1f ms  message %8zu   modelled %9.3f ms  measured %9.3f ms   off by %+.2f %%\n",
              static_cast<unsigned long long>(mbps), double(latency) / 1e6, message, modelled / 1e6, median(millis),
              median(errors));
}

}  // namespace

int main() {
  round_trip();
  for (std::size_t cap : {64u << 10, 256u << 10, 1u << 20}) throughput(1 << 20, cap);
  throughput(64 << 20, 256 << 10);
  throughput(1 << 10, 256 << 10);
  for (fl::u64 mbps : {8, 100, 1000})
    for (std::size_t message : {1u << 10, 32u << 10, 256u << 10, 1500000u, 4u << 20})
      if (mbps > 8 || message < 4000000) pace(mbps, 5 * fl::millisecond, message);
}
