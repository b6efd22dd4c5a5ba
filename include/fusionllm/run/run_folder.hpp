// SPDX-License-Identifier: Apache-2.0
// The folder of a run: config.json (as resolved), lasting.json (what a resumed run must have the same), metrics.jsonl
// (an event a line), checkpoints/. A folder belongs to one run; another run does not write into it.
#pragma once

#include <sys/file.h>

#include <optional>

#include "../estimate/json_cursor.hpp"
#include "../trainer/checkpoint.hpp"
#include "../trainer/config_text.hpp"
#include "../trainer/whole_file.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// Writes `text` as a whole file, so that what was there before is not lost to a full disk. A pipe or a device is written
/// straight. Errors: errc::resource.
inline void write_whole_file(const std::string& path, std::string_view text) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    whole_file file(path, errc::resource, "file");
    file.write(text.data(), text.size());
    return file.finish();
  }
  const descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  while (file.get() >= 0 && !text.empty()) {
    const auto n = ::write(file.get(), text.data(), text.size());
    if (n > 0) text.remove_prefix(std::size_t(n));
    else if (n == 0 || errno != EINTR) break;
  }
  if (file.get() < 0 || !text.empty())
    fail(errc::resource, "cannot write '", path, "': ", std::strerror(errno), ": check what it is, or name another");
}

}  // namespace detail

class run_folder {
 public:
  explicit run_folder(std::string path) : path_(std::move(path)), checkpoints_(path_ + "/checkpoints") {}

  const std::string& path() const { return path_; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string config_file() const { return path_ + "/config.json"; }
  const checkpoint_folder& checkpoints() const { return checkpoints_; }

  /// While what it gives lives, no other process may write into the folder, which is made. Errors: errc::config when one
  /// does; errc::resource.
  detail::descriptor lock() const {
    make(path_);
    detail::descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0 && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail(errc::config, "run folder '", path_, "' is being written by another process: wait for its end, or give another folder");
    return folder;
  }
  bool holds_run() const { return !checkpoints_.steps().empty(); }

  /// Makes the folder and checks what goes on in it: a resumed run must be the one that began there, and a new one must
  /// not find checkpoints. Changes nothing of a run that is there. Errors: errc::config naming the key that differs,
  /// errc::checkpoint, errc::resource.
  void open(const run_config& c, u64 data_digest) const {
    make(path_);
    checkpoints_.prepare();
    if (c.resume) expect(lasting_entries(c, data_digest));
    else refuse_unless_new(c);
  }
  /// The opened folder is this run's from now on; one that it overwrites is removed, as soon as the folder can be written to.
  /// Not before all that can be wrong with a configuration has been seen. Errors: errc::resource.
  void begin(const run_config& c, u64 data_digest) const {
    write("config.json", to_json(c));
    if (!c.resume && c.overwrite) remove_run({});  // before lasting.json lets checkpoints pass for this run's
    write("lasting.json", to_json(lasting_entries(c, data_digest)));
  }
  /// As `open`, for a run that is to go on from a checkpoint made elsewhere.
  void open_for_import(const run_config& c) const {
    make(path_);
    checkpoints_.prepare();
    refuse_unless_new(c);
  }
  /// As `begin`, once that checkpoint is there as the one of step 0. What its run must keep the same is decided when it
  /// first goes on. Errors: errc::resource.
  void begin_import(const run_config& c) const {
    write("config.json", to_json(c));
    ::unlink((path_ + "/lasting.json").c_str());
    if (c.overwrite) remove_run(0);
  }

 private:
  void refuse_unless_new(const run_config& c) const {
    if (!c.overwrite && holds_run())
      fail(errc::config, "run folder '", path_, "' holds checkpoints: go on from them with --resume, remove them with --overwrite, or "
           "give another folder");
  }

  static void make(const std::string& path) {
    if (path.empty()) return;
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return;
    if (const auto slash = path.rfind('/'); slash != std::string::npos && slash > 0) make(path.substr(0, slash));
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      fail(errc::resource, "cannot make run folder '", path, "': ", std::strerror(errno), ": give another with --run");
  }

  void remove_run(std::optional<u64> but) const {
    for (u64 step : checkpoints_.steps())
      if (step != but) ::unlink(checkpoints_.file_of(step).c_str());
    ::unlink(metrics_file().c_str());
  }

  static std::string to_json(const run_config& c) { return fusionllm::to_json(c); }
  static std::string to_json(const std::vector<config_entry>& entries) {
    json_text j(2);
    j.begin_object();
    for (const auto& e : entries) j.field(e.key, std::string_view(e.value));
    j.end_object();
    return j.take() + '\n';
  }

  void write(const std::string& name, const std::string& text) const { detail::write_whole_file(path_ + '/' + name, text); }

  void expect(const std::vector<config_entry>& now) const {
    const std::string path = path_ + "/lasting.json";
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return;
    const auto before = parse_json(read_small_file(path, errc::config), errc::config, path);
    for (const auto& e : now) {
      const auto found = before.find(e.key);
      if (found == before.end() || !found->is_string() || found->get<std::string>() == e.value) continue;
      fail(errc::config, "the run in '", path_, "' has ", e.key, " = '", printable(found->get<std::string>()), "', now it is '",
           printable(e.value), "': resume with the same, or begin in another folder");
    }
  }

  std::string path_;
  checkpoint_folder checkpoints_;
};

}  // namespace fusionllm::inline v0
