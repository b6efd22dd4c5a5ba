// SPDX-License-Identifier: Apache-2.0
// A device as a GPU is one, on the host: its memory is its own, and nothing has run before someone waits. Work is a queue
// of closures that `wait` runs in order; who looks at a result too early, or overwrites what work still reads, gets other
// bits. Operators are those of fl::reference<float>, so that a run on it equals a run on that, bit for bit.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include <fusionllm/cuda/packing.hpp>
#include <fusionllm/device/reference.hpp>
#include <fusionllm/runtime/vector_functions.hpp>

namespace deferred {

namespace fl = fusionllm;
using fl::i64;
using fl::u64;

class queue_memory final : public fl::device_memory {
 public:
  ~queue_memory() override {
    for (auto& [p, bytes] : live_) std::free(p);
  }
  void push(std::function<void()> f) { work_.push_back(std::move(f)); }
  u64 allocations() const { return allocations_; }
  u64 waits() const { return waits_; }

  void* allocate(u64 bytes) override {
    ++allocations_;
    void* p = std::calloc(1, bytes ? (bytes + 255) / 256 * 256 : 256);
    live_[p] = bytes;
    return p;
  }
  void release(void* p) noexcept override {
    run();
    live_.erase(p);
    std::free(p);
  }
  void* allocate_shared(u64 bytes) override { return allocate(bytes); }
  void release_shared(void* p) noexcept override { release(p); }
  void upload(void* to, const void* from, u64 bytes) override {
    const auto* b = static_cast<const std::byte*>(from);
    push([to, kept = std::vector<std::byte>(b, b + bytes)] {
      if (!kept.empty()) std::memcpy(to, kept.data(), kept.size());
    });
  }
  void download(void* to, const void* from, u64 bytes) override { copy(to, from, bytes); }
  void read(void* to, const void* from, u64 bytes) override {
    settle();
    if (bytes) std::memcpy(to, from, bytes);
  }
  void copy(void* to, const void* from, u64 bytes) override {
    push([=] {
      if (bytes) std::memmove(to, from, bytes);
    });
  }
  void zero(void* to, u64 bytes) override {
    push([=] {
      if (bytes) std::memset(to, 0, bytes);
    });
  }
  u64 mark() override { return next_++; }
  bool reached(u64) override { return work_.empty(); }
  void wait(u64, fl::nanoseconds) override {
    ++waits_;
    run();
  }

 private:
  void run() noexcept {
    for (std::size_t i = 0; i < work_.size(); ++i) work_[i]();
    work_.clear();
  }
  std::vector<std::function<void()>> work_;
  std::map<void*, u64> live_;
  u64 next_ = 0, allocations_ = 0, waits_ = 0;
};

/// Teams of one, when the queue comes to it.
struct launch {
  struct context : fl::device_context {
    queue_memory own;
    explicit context(int = 1) {}
    fl::device_memory* memory() override { return &own; }
  };
  template <class Body>
  static void blocks(context& c, i64 wanted, const Body& body, const char* what) {
    c.own.push([=] {
      fl::device_context none;
      fl::host_launch::blocks(none, wanted, body, what);
    });
  }
  template <class Body>
  static void rows(context& c, i64 rows, i64, const Body& body, const char* what) {
    blocks(c, rows, body, what);
  }
  template <class Body>
  static void items(context& c, i64 items, const Body& body, const char* what) {
    blocks(c, items, body, what);
  }
};

/// The device. Its packing is the GPU's, on teams of one.
struct device {
  using real = float;
  using plain = fl::reference<float>;
  static constexpr std::string_view name = "deferred";
  struct context : launch::context {
    explicit context(int = 1) {}
    fl::team_packing<launch> packing_of{*this, own};
    fl::device_packing* packing() override { return &packing_of; }
  };
  template <class Op>
  static constexpr const fl::kernel_table* kernels();
};

/// K's functions, later.
template <class K>
struct later {
  static void push(device::context& c, const fl::kernel_args& a, void (*f)(const fl::kernel_args&)) {
    c.own.push([=] { f(a); });
  }
  static void forward(device::context& c, const fl::kernel_args& a) {
    push(c, a, [](const fl::kernel_args& x) {
      device::plain::context none;
      K::forward(none, x);
    });
  }
  static void backward_input(device::context& c, const fl::kernel_args& a)
    requires requires(device::plain::context& p) { K::backward_input(p, a); }
  {
    push(c, a, [](const fl::kernel_args& x) {
      device::plain::context none;
      K::backward_input(none, x);
    });
  }
  static void backward_weight(device::context& c, const fl::kernel_args& a)
    requires requires(device::plain::context& p) { K::backward_weight(p, a); }
  {
    push(c, a, [](const fl::kernel_args& x) {
      device::plain::context none;
      K::backward_weight(none, x);
    });
  }
};

/// The plain device's functions on vectors, later.
struct vectors {
  using now = fl::host_vectors<device::plain>;
  static queue_memory& queue(fl::device_context& c) { return static_cast<device::context&>(c).own; }
  static void add(fl::device_context& c, fl::dtype t, void* out, const void* a, const void* b, i64 n) {
    queue(c).push([=] { device::plain::context p; now::add(p, t, out, a, b, n); });
  }
  static void search(fl::device_context& c, fl::dtype t, const void* x, i64 n, fl::u32* found) {
    queue(c).push([=] { device::plain::context p; now::search(p, t, x, n, found); });
  }
  static void zero(fl::device_context& c, void* x, u64 bytes) { queue(c).zero(x, bytes); }
  static void widen(fl::device_context& c, fl::dtype t, const void* x, double* number) {
    queue(c).push([=] { device::plain::context p; now::widen(p, t, x, number); });
  }
  static void decay(fl::device_context& c, void* w, const void* g, i64 n, double kept) {
    queue(c).push([=] { device::plain::context p; now::decay(p, w, g, n, kept); });
  }
  static void sums_of_squares(fl::device_context& c, fl::parameter_updates all, double* sums) {
    queue(c).push([=, kept = std::vector(all.begin(), all.end())] { device::plain::context p; now::sums_of_squares(p, kept, sums); });
  }
  static void adamw(fl::device_context& c, fl::parameter_updates all, const fl::update_scalars& s) {
    queue(c).push([=, kept = std::vector(all.begin(), all.end())] { device::plain::context p; now::adamw(p, kept, s); });
  }
  static void sgd(fl::device_context& c, fl::parameter_updates all, const fl::update_scalars& s) {
    queue(c).push([=, kept = std::vector(all.begin(), all.end())] { device::plain::context p; now::sgd(p, kept, s); });
  }
};

}  // namespace deferred

namespace fusionllm::inline v0 {
template <>
inline constexpr vector_functions vector_functions_of<deferred::device>{
    &deferred::vectors::add,   &deferred::vectors::search,          &deferred::vectors::zero,  &deferred::vectors::widen,
    &deferred::vectors::decay, &deferred::vectors::sums_of_squares, &deferred::vectors::adamw, &deferred::vectors::sgd};

template <class Op>
struct kernel<Op, deferred::device> : deferred::later<kernel<Op, reference<float>>> {
  static u64 workspace_bytes(const op_view& v) { return kernel_table_of<Op, reference<float>>.workspace_bytes(v); }
  static constexpr bool adds_partial = kernel_table_of<Op, reference<float>>.adds_partial;
};
template <class... Links>
struct chain_kernel<deferred::device, Links...> : deferred::later<chain_kernel<reference<float>, Links...>> {
  static constexpr bool adds_partial = true;
};
}  // namespace fusionllm::inline v0

namespace deferred {
template <class Op>
constexpr const fl::kernel_table* device::kernels() {
  return &fl::kernel_table_of<Op, device>;
}
}  // namespace deferred
