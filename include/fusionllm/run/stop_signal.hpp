// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) and SIGTERM: the first asks the run to finish its step and save, the second ends the process at once.
// So does, once, the end of the terminal (SIGHUP) or of whoever read the output (SIGPIPE), where the process does not
// ignore them. Only commands install this; the library never touches signals.
#pragma once

#include <csignal>

#include "../core/types.hpp"

namespace fusionllm::inline v0 {

namespace detail {
inline volatile std::sig_atomic_t stop_signals = 0;

inline volatile std::sig_atomic_t pipe_signals = 0;

extern "C" inline void fusionllm_on_stop_signal(int number) {
  if (number == SIGPIPE) pipe_signals = 1;
  if ((number == SIGPIPE || number == SIGHUP) && stop_signals > 0) return;  // every line that is printed, and shells, repeat them
  stop_signals = stop_signals + 1;
  if (stop_signals < 2) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}
}  // namespace detail

/// While it lives, signals ask for a stop. One at a time.
class stop_signal {
 public:
  stop_signal() {
    detail::stop_signals = 0;
    detail::pipe_signals = 0;
    struct sigaction act {};
    act.sa_handler = &detail::fusionllm_on_stop_signal;  // without SA_RESTART, so that waits wake up
    sigemptyset(&act.sa_mask);
    for (int i = 0; i < count; ++i) {
      ::sigaction(numbers[i], &act, &before_[i]);
      if (i >= 2 && before_[i].sa_handler == SIG_IGN) ::sigaction(numbers[i], &before_[i], nullptr);
    }
  }
  ~stop_signal() {
    if (detail::pipe_signals) before_[3].sa_handler = SIG_IGN;  // what is still to be printed must not end the process
    for (int i = 0; i < count; ++i) ::sigaction(numbers[i], &before_[i], nullptr);
  }
  stop_signal(const stop_signal&) = delete;
  stop_signal& operator=(const stop_signal&) = delete;

  bool requested() const { return detail::stop_signals != 0; }

 private:
  static constexpr int count = 4;
  static constexpr int numbers[count] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  struct sigaction before_[count];
};

}  // namespace fusionllm::inline v0
