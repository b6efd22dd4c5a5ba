// SPDX-License-Identifier: Apache-2.0
// A seat holds one policy, or one list.
// expect: two policies for one seat: put them into a list, such as schedulers<a, b>
#include <fusionllm/cluster/policies.hpp>

namespace fl = fusionllm;

struct mine {
  using seat = fl::scheduler_seat;
};
#ifdef POSITIVE
struct other {
  using seat = fl::compressor_seat;
};
#else
struct other {
  using seat = fl::scheduler_seat;
};
#endif

fl::policy_for<fl::scheduler_seat, void, mine, other> chosen;
