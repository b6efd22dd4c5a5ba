// SPDX-License-Identifier: Apache-2.0
// fl::cuda as the host program sees it, without a CUDA header: a host file never needs nvcc. For each model one symbol,
// `device_tables<Model, cuda>()`, is defined by a .cu file of the user's that includes the model and this:
//
//   #include <fusionllm/cuda/device.cuh>
//   template const fusionllm::device_side& fusionllm::device_tables<my_model, fusionllm::cuda>();
//
// `cuda_bf16` in that line is a second table, for activations of 16 bits; `cuda_tf32` is `cuda` with products of 10-bit
// mantissas, and needs no line of its own.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "../core/error.hpp"
#include "../core/half.hpp"
#include "../graph/fingerprint.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

struct vector_functions;  // vector_functions.hpp

/// A GPU in use by one peer: its memory, and streams in which everything runs in the order of the calls. Calls return at
/// once unless they say otherwise; what fails on the GPU is thrown by a later call. Errors are fl::error:
/// errc::resource for what the machine lacks, errc::internal for the rest. One thread at a time calls, but `reached` may
/// be asked by any.
class cuda_context : public device_context, public device_memory {
 public:
  device_memory* memory() override { return this; }

  /// The k entries of largest magnitude of x[0, n), the lowest position first among equals: `positions` ascending and,
  /// if `values` is not null, their values; k <= n < 2^32. All in device memory. *non_finite becomes 1 if x holds an
  /// infinity or a NaN, else 0. `workspace`: `top_k_workspace(n, k)` bytes, aligned to 256.
  virtual void top_k(const float* x, i64 n, i64 k, u32* positions, float* values, u32* non_finite, void* workspace) = 0;
  virtual u64 top_k_workspace(i64 n, i64 k) = 0;

  /// E.g. "cuda:0 (NVIDIA H200)".
  virtual std::string_view description() const = 0;
};

/// How products of fp32 matrices are computed: as they are, or with mantissas cut to 10 bits, many times faster.
enum class product_precision : u8 { f32, tf32 };

/// What a .cu file knows of a model.
struct device_side {
  u64 fingerprint;  ///< of the model as the .cu file saw it
  /// For every node of the graph the kernels that compute it; null for the model's inputs, and for operators that have
  /// no CUDA kernel in this version.
  std::span<const kernel_table* const> tables;
  int (*count)();  ///< GPUs that can be opened; 0 without a driver
  std::unique_ptr<cuda_context> (*open)(int ordinal, product_precision products);
  const vector_functions* vectors;
};

/// The device. Its kernels, and its context's members, are for .cu files: see kernels/.
struct cuda {
  using real = float;
  static constexpr std::string_view name = "cuda";
  static constexpr product_precision products = product_precision::f32;
  struct context;
  template <class Op>
  static constexpr const kernel_table* kernels();
};

/// The same tables; products in TF32.
struct cuda_tf32 {
  using real = float;
  static constexpr std::string_view name = "cuda_tf32";
  static constexpr product_precision products = product_precision::tf32;
  using context = cuda::context;
};

/// Activations and cotangents in bfloat16; parameters, their gradients and the optimizer in fp32.
struct cuda_bf16 {
  using real = bfloat16;
  static constexpr std::string_view name = "cuda_bf16";
  static constexpr product_precision products = product_precision::f32;
  using context = cuda::context;
  template <class Op>
  static constexpr const kernel_table* kernels();
};

/// Devices that a .cu file has the tables of.
template <class Device>
concept tabled_device = requires {
  { Device::products } -> std::convertible_to<product_precision>;
};
/// The one of them whose tables a device uses.
template <class Device>
using tables_of = std::conditional_t<sizeof(typename Device::real) == sizeof(float), cuda, Device>;

/// Defined for a model in its .cu file; a program without that file does not link.
template <class Model, class Device>
const device_side& device_tables();

/// Throws errc::model unless the .cu file was compiled from this graph.
inline void require_same_model(const graph_view& g, const device_side& side) {
  if (side.fingerprint == fingerprint(g) && side.tables.size() == g.nodes.size()) return;
  fail(errc::model, "the CUDA part of this program has the model ", std::hex, side.fingerprint,
       ", its host part the model ", fingerprint(g), ": compile the .cu file again, from the same model");
}

/// Throws errc::plan if the GPU is to run a node that it has no kernel for. `wanted`: one flag a node.
inline void require_kernels(const graph_view& g, const device_side& side, std::span<const u8> wanted) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (wanted[i] && !g.nodes[i].op->placeholder && !side.tables[i])
      fail(errc::plan, "node ", i, " (", g.nodes[i].op->name, g.nodes[i].scope.length ? " in " : "",
           g.nodes[i].scope.view(), ") is planned for a GPU, but this version has no CUDA kernel for the operator ",
           g.nodes[i].op->name, ": plan it on a cpu peer, or specialize fusionllm::kernel<Op, cuda> in the .cu file");
}

}  // namespace fusionllm::inline v0
