// SPDX-License-Identifier: Apache-2.0
// What a peer of a run is told, and what it needs of its process.
#pragma once

#include <span>
#include <string>

#include "../core/error.hpp"
#include "../runtime/stage_compute.hpp"
#include "../transport/address.hpp"

namespace fusionllm::inline v0 {

struct peer_options {
  u32 rank = 0;
  std::string name;      ///< for messages
  address bind;          ///< for other peers
  address broker;
  std::string device;    ///< one of those compiled in; empty: the first
  int threads = 1;
  u64 memory_bytes = 0;
};

class peer_host {
 public:
  virtual ~peer_host() = default;
  /// Fills the inputs that `nodes` (placeholders) name, for the whole batch of `step`, into memory that stays until the
  /// next call, and sets data.inputs, rows and time.
  virtual void load(u64 step, std::span<const int> nodes, step_data& data) = 0;
  virtual void on_end(const error& why) = 0;
};

}  // namespace fusionllm::inline v0
