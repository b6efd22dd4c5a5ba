// SPDX-License-Identifier: Apache-2.0
// Template arguments of a trainer in any order: each policy names its seat, an empty seat gets the default, and two
// policies in one seat are one readable error.
#pragma once

#include <type_traits>

#include "../core/seat.hpp"

namespace fusionllm::inline v0 {

template <class Stream>
class basic_asio_tcp;
class tcp_stream;

/// Several devices in the device's seat: configuration chooses, the first is the default.
template <class... Device>
struct devices {
  using seat = device_seat;
  static_assert(sizeof...(Device) > 0, "a list of devices has at least one");
};

namespace detail {

/// The seat of a policy: its own, or the device's for types that are devices.
template <class Policy>
struct seat_of {
  static_assert(requires { typename Policy::seat; } || requires { typename Policy::context; },
                "a trainer's policy names its seat: using seat = fusionllm::..._seat;");
  using type = device_seat;
};
template <class Policy>
  requires requires { typename Policy::seat; }
struct seat_of<Policy> {
  using type = typename Policy::seat;
};

/// A policy that nothing would ask for is an error: it would be left out without a word.
template <class Policy>
struct check_policy {
  using seat = typename seat_of<Policy>::type;
  template <class... Seat>
  static constexpr bool sits_in = (std::is_same_v<seat, Seat> || ...);
  static_assert(sits_in<device_seat, scheduler_seat, compressor_seat, transport_seat>,
                "a trainer has no such seat: it has those of device, scheduler, compressor and transport");
  static_assert(!sits_in<transport_seat> || std::is_same_v<Policy, basic_asio_tcp<tcp_stream>>,
                "the transport's seat takes asio_tcp: commands know no other transport yet");
  static constexpr bool value = true;
};

template <class Seat, class Default, class... Policies>
struct policy_pick {
  using type = Default;
};
template <class Seat, class Default, class First, class... Rest>
struct policy_pick<Seat, Default, First, Rest...> {
  static constexpr bool here = std::is_same_v<typename seat_of<First>::type, Seat>;
  using later = typename policy_pick<Seat, void, Rest...>::type;
  static_assert(!here || std::is_void_v<later>, "two policies for one seat: put them into a list, such as schedulers<a, b>");
  using type = std::conditional_t<here, First, std::conditional_t<std::is_void_v<later>, Default, later>>;
};

}  // namespace detail

/// The policy for a seat among Policies, or Default.
template <class Seat, class Default, class... Policies>
using policy_for = typename detail::policy_pick<Seat, Default, Policies...>::type;

}  // namespace fusionllm::inline v0
