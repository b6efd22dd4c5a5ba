// SPDX-License-Identifier: Apache-2.0
// The schedulers that come with the library, as a list for the scheduler's seat.
#pragma once

#include "equal.hpp"
#include "op_fence.hpp"

namespace fusionllm::inline v0 {

using built_in_schedulers = schedulers<op_fence, equal_number, equal_compute, best_single>;

}  // namespace fusionllm::inline v0
