// SPDX-License-Identifier: Apache-2.0
// Seats: what a policy is for. A policy names its seat (`using seat = compressor_seat;`), so that policies come in any
// order and two for one seat are found by comparing types.
#pragma once

namespace fusionllm::inline v0 {

/// What turns tensors into bytes on a link; may hold a list, from which configuration chooses.
struct compressor_seat {};
/// What computes.
struct device_seat {};
/// What makes plans; may hold a list, as above.
struct scheduler_seat {};
/// What carries messages between peers.
struct transport_seat {};

}  // namespace fusionllm::inline v0
