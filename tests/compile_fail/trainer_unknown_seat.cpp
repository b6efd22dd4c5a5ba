// SPDX-License-Identifier: Apache-2.0
// A policy of a seat that trainers do not have would change nothing.
// expect: a trainer has no such seat: it has those of device, scheduler, compressor and transport
#include <fusionllm/cluster/policies.hpp>

namespace fl = fusionllm;

struct pilot_seat {};
struct pilot {
#ifdef POSITIVE
  using seat = fl::scheduler_seat;
#else
  using seat = pilot_seat;
#endif
};

static_assert(fl::detail::check_policy<pilot>::value);
