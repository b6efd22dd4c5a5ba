// SPDX-License-Identifier: Apache-2.0
// Writes one checkpoint at a time on a thread of its own: a disk that takes seconds must not silence the thread that
// answers heartbeats.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

class background_save {
 public:
  struct result {
    u64 step = 0;
    std::string path;
    u64 bytes = 0;
    double seconds = 0;
    std::optional<error> failure;
  };

  background_save() = default;
  ~background_save() {
    if (thread_.joinable()) thread_.join();
  }
  background_save(const background_save&) = delete;
  background_save& operator=(const background_save&) = delete;

  /// Runs `save(path)`, which gives the bytes it wrote. There must be none under way: see `wait`.
  template <class Save>
  void start(u64 step, std::string path, Save save) {
    done_ = false;
    result_ = {step, std::move(path), 0, 0, std::nullopt};
    thread_ = std::thread([this, save = std::move(save)] {
      const auto begin = std::chrono::steady_clock::now();
      try {
        result_.bytes = save(result_.path);
      } catch (const error& e) {
        result_.failure = e;
      } catch (const std::exception& e) {
        result_.failure = error(errc::resource, e.what());
      }
      result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      done_ = true;
    });
  }

  /// Whether it still reads what it saves.
  bool under_way() const { return thread_.joinable() && !done_; }
  /// What became of the save, once, when it has ended.
  std::optional<result> poll() { return thread_.joinable() && done_ ? wait() : std::nullopt; }
  /// The same, after waiting for it; nothing when none was started.
  std::optional<result> wait() {
    if (!thread_.joinable()) return std::nullopt;
    thread_.join();
    return std::move(result_);
  }

 private:
  std::thread thread_;
  std::atomic<bool> done_{false};
  result result_;
};

}  // namespace fusionllm::inline v0
