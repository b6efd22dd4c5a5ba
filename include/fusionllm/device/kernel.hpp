// SPDX-License-Identifier: Apache-2.0
// How operators compute: `kernel<Op, Device>` has static functions over `kernel_args`, and `kernel_table` holds them as
// pointers, so that a peer runs any set of nodes. A kernel neither allocates nor waits, and keeps nothing between calls
// but what its device's context caches.
#pragma once

#include <array>

#include "../core/philox.hpp"
#include "../core/types.hpp"
#include "../graph/node.hpp"
#include "device_memory.hpp"

namespace fusionllm::inline v0 {

/// Contiguous memory with a concrete shape. `data` is null where a tensor is absent or not wanted.
struct tensor_ref {
  void* data = nullptr;
  extents dims{};
  dtype type = dtype::f32;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  i64 count() const { return dims.count(); }
  explicit operator bool() const { return data != nullptr; }
};

enum class pass : u8 { training, inference };

/// One operator on one micro-batch. Which members are set depends on the function that is called.
struct kernel_args {
  const node* op = nullptr;
  pass mode = pass::training;
  std::array<tensor_ref, max_inputs> in{};  ///< values; in backward only those that the operator saves
  std::array<tensor_ref, max_params> param{};
  tensor_ref out{};                                ///< forward: to be written; backward: only if the operator saves it
  tensor_ref d_out{};                              ///< cotangent of out; absent for a loss, whose cotangent is 1
  std::array<tensor_ref, max_inputs> d_in{};       ///< backward_input: overwrite each that is present
  std::array<tensor_ref, max_inputs> d_partial{};  ///< if present (adds_partial kernels only): d_in = d_partial + own
  std::array<tensor_ref, max_params> d_param{};    ///< backward_weight: add to each that is present
  void* saved = nullptr;                           ///< `Op::saved` elements of real (of fp32 beside 16 bits), from
                                                   ///< forward to backward
  void* workspace = nullptr;                       ///< `workspace_bytes` of this kernel
  void* state = nullptr;                           ///< decoding: `Op::state` elements of real for `longest` times;
                                                   ///< forward adds its times to them
  i64 past = 0, longest = 0;                       ///< decoding: times before out's first, and all there may be
  random_key key{};                                ///< .node is the traced position; a chain uses each link's own
  double statistic_share = 0;                      ///< backward_weight: what this micro-batch's value of a running
                                                   ///< statistic counts; add value * share to its d_param
  double loss_scale = 1;                           ///< a loss: 1 / number of terms that count in the whole batch
};

class device_packing;  // compress/device_packing.hpp

/// What a device keeps for one peer: threads, libraries' handles and caches. Devices derive their own.
struct device_context {
  virtual ~device_context() = default;
  /// Where its tensors lie; null: in plain memory, and its functions have computed when they return.
  virtual device_memory* memory() { return nullptr; }
  /// What packs frames of tensors there; null where `memory` is.
  virtual device_packing* packing() { return nullptr; }
};

using kernel_function = void (*)(device_context&, const kernel_args&);

struct kernel_table {
  kernel_function forward = nullptr;
  kernel_function backward_input = nullptr;
  kernel_function backward_weight = nullptr;         ///< null: the operator has no parameters
  u64 (*workspace_bytes)(const op_view&) = nullptr;  ///< the larger of forward's and backward's needs
  bool adds_partial = false;                         ///< backward_input honours d_partial
};

namespace detail {
template <class Op, class T>
struct own_kernel {
  static_assert(
      sizeof(Op) == 0,
      "the device has no kernel for this operator, and the operator brings none (template <class T> struct kernel)");
  using type = own_kernel;
};
template <class Op, class T>
  requires requires { typename Op::template kernel<T>; }
struct own_kernel<Op, T> {
  using type = typename Op::template kernel<T>;
};
}  // namespace detail

/// The functions of operator Op on Device. A device specializes it for the operators it has; the others come from the
/// operator itself: `Op::template kernel<T>` in plain loops over the device's `real` type T.
template <class Op, class Device>
struct kernel : detail::own_kernel<Op, typename Device::real>::type {};

namespace detail {

template <class K, class Op, class Device>
constexpr kernel_table make_kernel_table() {
  using context = typename Device::context;
  static_assert(
      requires(context & c, const kernel_args& a) { K::forward(c, a); },
      "a kernel has a static void forward(context&, const kernel_args&)");
  kernel_table t;
  t.forward = [](device_context& c, const kernel_args& a) { K::forward(static_cast<context&>(c), a); };
  if constexpr (requires(context & c, const kernel_args& a) { K::backward_input(c, a); })
    t.backward_input = [](device_context& c, const kernel_args& a) { K::backward_input(static_cast<context&>(c), a); };
  if constexpr (requires(context & c, const kernel_args& a) { K::backward_weight(c, a); })
    t.backward_weight = [](device_context& c, const kernel_args& a) {
      K::backward_weight(static_cast<context&>(c), a);
    };
  if constexpr (requires(const op_view& v) { K::workspace_bytes(v); })
    t.workspace_bytes = &K::workspace_bytes;
  else
    t.workspace_bytes = [](const op_view& v) { return u64(Op::workspace(v) * sizeof(typename Device::real)); };
  if constexpr (requires { K::adds_partial; }) t.adds_partial = K::adds_partial;
  return t;
}

}  // namespace detail

template <class Op, class Device>
inline constexpr kernel_table kernel_table_of = detail::make_kernel_table<kernel<Op, Device>, Op, Device>();

}  // namespace fusionllm::inline v0
