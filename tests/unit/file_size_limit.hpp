// SPDX-License-Identifier: Apache-2.0
// A disk that is full: while this lives, no file of the process grows beyond a limit.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace fusionllm_test {

class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit low{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &low);
  }
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

}  // namespace fusionllm_test
