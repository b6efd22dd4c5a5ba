// SPDX-License-Identifier: Apache-2.0
// fl::cuda as the host program sees it, without a CUDA header: a host file never needs nvcc. For each model one symbol,
// `device_tables<Model, cuda>()`, is defined by a .cu file of the user's that includes the model and this:
//
//   #include <fusionllm/cuda/device.cuh>
//   template const fusionllm::device_side& fusionllm::device_tables<my_model, fusionllm::cuda>();
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "../core/error.hpp"
#include "../graph/fingerprint.hpp"
#include "kernel.hpp"

namespace fusionllm::inline v0 {

/// A GPU in use by one peer: its memory, and one stream in which everything runs in the order of the calls. Calls
/// return at once unless they say otherwise; what fails on the GPU is thrown by a later call. Errors are fl::error:
/// errc::resource for what the machine lacks, errc::internal for the rest. One thread at a time calls, but `reached` may
/// be asked by any.
class cuda_context : public device_context {
 public:
  /// Device memory, aligned to 256 bytes. Both wait for the GPU.
  virtual void* allocate(u64 bytes) = 0;
  virtual void release(void* memory) noexcept = 0;

  /// Copies between host and device. The host's part must stay as it is until the copy has run.
  virtual void upload(void* to, const void* from, u64 bytes) = 0;
  virtual void download(void* to, const void* from, u64 bytes) = 0;
  virtual void zero(void* to, u64 bytes) = 0;

  /// A ticket for all that was called before.
  virtual u64 mark() = 0;
  virtual bool reached(u64 ticket) = 0;
  /// Waits for a ticket, at most `limit` nanoseconds; then errc::timeout, naming the GPU.
  virtual void wait(u64 ticket, nanoseconds limit) = 0;

  /// The k entries of largest magnitude of x[0, n), the lowest position first among equals: `positions` ascending and,
  /// if `values` is not null, their values; k <= n < 2^32. All in device memory. *non_finite becomes 1 if x holds an
  /// infinity or a NaN, else 0. `workspace`: `top_k_workspace(n, k)` bytes, aligned to 256.
  virtual void top_k(const float* x, i64 n, i64 k, u32* positions, float* values, u32* non_finite, void* workspace) = 0;
  virtual u64 top_k_workspace(i64 n, i64 k) = 0;

  /// E.g. "cuda:0 (NVIDIA H200)".
  virtual std::string_view description() const = 0;
};

/// What a .cu file knows of a model.
struct device_side {
  u64 fingerprint;  ///< of the model as the .cu file saw it
  /// For every node of the graph the kernels that compute it; null for the model's inputs, and for operators that have
  /// no CUDA kernel in this version.
  std::span<const kernel_table* const> tables;
  int (*count)();  ///< GPUs that can be opened; 0 without a driver
  std::unique_ptr<cuda_context> (*open)(int ordinal);
};

/// The device. Its kernels, and its context's members, are for .cu files: see kernels/.
struct cuda {
  using real = float;
  static constexpr std::string_view name = "cuda";
  struct context;
  template <class Op>
  static constexpr const kernel_table* kernels();
};

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
