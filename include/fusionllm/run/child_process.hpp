// SPDX-License-Identifier: Apache-2.0
// Processes that a command starts: copies of its own program with other arguments. A child is in a group of its own, so
// that Ctrl-C reaches only the parent, and dies with its parent. What it says on stderr is kept for a message.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "../core/clock.hpp"
#include "../core/error.hpp"
#include "../trainer/data_file.hpp"

namespace fusionllm::inline v0 {

class child_process {
 public:
  /// Starts this program again. `environment` is added to this process's, or in the place of what has its names there.
  /// Errors: errc::resource.
  child_process(std::string name, const std::vector<std::string>& arguments, const std::vector<std::string>& environment)
      : name_(std::move(name)), said_(::memfd_create("stderr", MFD_CLOEXEC)) {
    std::vector<char*> words = pointers(arguments);
    if (said_.get() < 0) fail(errc::resource, "cannot start ", name_, ": no room for what it says: ", std::strerror(errno));
    std::vector<std::string> variables = environment;
    for (char** v = ::environ; *v; ++v) {
      const std::string_view one = *v, key = one.substr(0, one.find('=') + 1);
      bool given = false;
      for (const auto& e : environment) given = given || (!key.empty() && e.starts_with(key));
      if (!given) variables.emplace_back(one);
    }
    std::vector<char*> all = pointers(variables);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) fail(errc::resource, "cannot start ", name_, ": ", std::strerror(errno));
    if (pid_ == 0) become(words, all, parent);
  }
  ~child_process() {
    if (running()) {
      ::kill(pid_, SIGKILL);
      wait(0);
    }
  }
  child_process(child_process&& o) noexcept
      : name_(std::move(o.name_)), said_(std::move(o.said_)), pid_(std::exchange(o.pid_, -1)), status_(o.status_) {}
  child_process& operator=(child_process&&) = delete;

  const std::string& name() const { return name_; }
  bool running() {
    if (pid_ > 0) wait(WNOHANG);
    return pid_ > 0;
  }
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  /// Once it has ended.
  bool ended_well() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }
  int exit_status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }
  /// "peer-1 was killed by signal 9 (Killed)", "peer-1 ended with status 6: data file ..."
  std::string ending() const {
    if (WIFSIGNALED(status_))
      return name_ + " was killed by signal " + std::to_string(WTERMSIG(status_)) + " (" + ::strsignal(WTERMSIG(status_)) + ")";
    const std::string last = last_line();
    return name_ + " ended with status " + std::to_string(WEXITSTATUS(status_)) + (last.empty() ? "" : ": " + last);
  }
  /// The last line that it wrote to stderr, without "error: ".
  std::string last_line() const {
    char text[4096];
    const off_t size = ::lseek(said_.get(), 0, SEEK_END);
    const off_t from = size > off_t(sizeof text) ? size - off_t(sizeof text) : 0;
    const auto n = ::pread(said_.get(), text, sizeof text, from);
    std::string_view s(text, n > 0 ? std::size_t(n) : 0);
    while (!s.empty() && s.back() == '\n') s.remove_suffix(1);
    if (const auto line = s.rfind('\n'); line != std::string_view::npos) s.remove_prefix(line + 1);
    if (s.substr(0, 7) == "error: ") s.remove_prefix(7);
    return std::string(s);
  }

 private:
  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> p;
    for (const auto& t : texts) p.push_back(const_cast<char*>(t.c_str()));
    p.push_back(nullptr);
    return p;
  }
  [[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& variables, pid_t parent) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    if (said_.get() >= 0) ::dup2(said_.get(), 2);
    ::execve("/proc/self/exe", words.data(), variables.data());
    ::_exit(127);
  }
  void wait(int how) {
    int status = 0;
    pid_t r;
    while ((r = ::waitpid(pid_, &status, how)) < 0 && errno == EINTR) {
    }
    if (r == 0) return;
    if (r == pid_) status_ = status;
    pid_ = -1;
  }

  std::string name_;
  detail::descriptor said_;
  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace fusionllm::inline v0
