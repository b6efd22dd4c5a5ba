// SPDX-License-Identifier: Apache-2.0
// The sessions of one transport, which owns them, and the bound on those whose handshake is not over.
#pragma once

#include <memory>
#include <vector>

#include "session.hpp"

namespace fusionllm::inline v0 {
namespace detail {

class session_set : public session_owner {
 public:
  explicit session_set(std::size_t half_open) : limit_(half_open) {}

  void add(std::shared_ptr<session> s) {
    sessions_.push_back(s);
    if (!s->accepted()) return;
    half_open_.push_back(s.get());
    if (half_open_.size() > limit_) {
      const std::string what = "made room: " + std::to_string(limit_) + " connections are in their handshake";
      half_open_.front()->turn_away(error(errc::resource, half_open_.front()->label() + ": " + what), what);
      half_open_.erase(half_open_.begin());
    }
  }
  void opened(session& s) override { std::erase(half_open_, &s); }
  void finished(session& s) override {
    std::erase(half_open_, &s);
    std::erase_if(sessions_, [&](const auto& p) { return p.get() == &s; });
  }
  /// Ends all of them without a word to the handlers.
  void orphan_all() {
    half_open_.clear();
    for (auto& s : std::exchange(sessions_, {})) s->orphan();
  }
  std::vector<std::shared_ptr<session>> all() const { return sessions_; }

 protected:
  ~session_set() { orphan_all(); }

 private:
  std::size_t limit_;
  std::vector<std::shared_ptr<session>> sessions_;
  std::vector<session*> half_open_;
};

}  // namespace detail
}  // namespace fusionllm::inline v0
