// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: a folder in which the newest whole one is found, and of which the newest N are kept.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "checkpoint_reader.hpp"
#include "checkpoint_writer.hpp"

namespace fusionllm::inline v0 {

class checkpoint_folder {
 public:
  explicit checkpoint_folder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  /// Creates the folder if it is missing (its parent must exist) and removes what interrupted writers left in it.
  /// Errors: errc::checkpoint.
  void prepare() const {
    if (::mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST)
      fail(errc::checkpoint, "cannot create folder '", path_, "': ", std::strerror(errno), ": check its parent");
    for_each_entry([&](std::string_view name) {
      if (name.find(".ckpt.part") != name.npos) ::unlink((path_ + '/' + std::string(name)).c_str());
    });
  }

  /// Where the checkpoint after `step` steps is.
  std::string file_of(u64 step) const {
    char name[40];
    std::snprintf(name, sizeof name, "/step-%010llu.ckpt", static_cast<unsigned long long>(step));
    return path_ + name;
  }

  /// Steps of the checkpoints in the folder, whole or not, ascending. Errors: errc::checkpoint when it cannot be read.
  std::vector<u64> steps() const {
    std::vector<u64> found;
    for_each_entry([&](std::string_view name) {
      if (!name.starts_with("step-") || !name.ends_with(".ckpt")) return;
      u64 step = 0;
      const char* end = name.data() + name.size() - 5;
      const auto r = std::from_chars(name.data() + 5, end, step);
      if (r.ec == std::errc{} && r.ptr == end && file_of(step) == path_ + '/' + std::string(name)) found.push_back(step);
    });
    std::sort(found.begin(), found.end());
    return found;
  }

  struct search {
    std::optional<checkpoint_reader> newest;  ///< whole and of this model; its records are verified
    std::vector<std::string> damaged;         ///< why newer ones were passed over
  };
  /// The newest whole checkpoint. Errors: errc::checkpoint when the newest whole one is of another model.
  search find_newest(u64 fingerprint) const {
    search s;
    const auto all = steps();
    for (auto step = all.rbegin(); step != all.rend() && !s.newest; ++step) {
      try {
        checkpoint_reader r(file_of(*step));
        r.verify();
        s.newest.emplace(std::move(r));
      } catch (const error& e) {
        if (e.code() != errc::checkpoint) throw;
        s.damaged.push_back(e.what());
      }
    }
    if (s.newest) s.newest->expect_model(fingerprint);
    return s;
  }

  /// Of the checkpoints up to the one of step `last`, which was just written, removes all but the newest `count`. Later
  /// ones are those that a resumed run passed over because they are damaged: they take no place of a whole one.
  void keep_newest(i64 count, u64 last) const {
    auto all = steps();
    std::erase_if(all, [&](u64 step) { return step > last; });
    for (std::size_t i = 0; i + std::size_t((std::max)(count, i64(1))) < all.size(); ++i) ::unlink(file_of(all[i]).c_str());
  }

 private:
  template <class F>
  void for_each_entry(F&& f) const {
    DIR* folder = ::opendir(path_.c_str());
    if (!folder) fail(errc::checkpoint, "cannot read folder '", path_, "': ", std::strerror(errno));
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(folder)) names.emplace_back(entry->d_name);
    ::closedir(folder);
    for (const auto& name : names) f(std::string_view(name));
  }

  std::string path_;
};

}  // namespace fusionllm::inline v0
