// SPDX-License-Identifier: Apache-2.0
// The folder of a run: config.json (as resolved), lasting.json (what a resumed run must have the same), metrics.jsonl
// (an event a line), checkpoints/. A folder belongs to one run; another run does not write into it.
#pragma once

#include <optional>

#include "../estimate/json_cursor.hpp"
#include "../trainer/checkpoint.hpp"
#include "../trainer/config_text.hpp"

namespace fusionllm::inline v0 {

class run_folder {
 public:
  explicit run_folder(std::string path) : path_(std::move(path)), checkpoints_(path_ + "/checkpoints") {}

  const std::string& path() const { return path_; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string config_file() const { return path_ + "/config.json"; }
  const checkpoint_folder& checkpoints() const { return checkpoints_; }

  /// Makes the folder, and says what goes on in it: a resumed run must be the one that began there, and a new one must
  /// not find checkpoints. Errors: errc::config naming the key that differs, errc::checkpoint, errc::resource.
  void open(const run_config& c, u64 data_digest) const {
    make(path_);
    checkpoints_.prepare();
    const auto lasting = lasting_entries(c, data_digest);
    if (c.resume) expect(lasting);
    else begin(c);
    write("lasting.json", to_json(lasting));
    write("config.json", to_json(c));
  }
  /// The same for a run that is to go on from a checkpoint made elsewhere: what it must keep the same is decided when it
  /// first does.
  void open_for_import(const run_config& c) const {
    make(path_);
    checkpoints_.prepare();
    begin(c);
    ::unlink((path_ + "/lasting.json").c_str());
    write("config.json", to_json(c));
  }

 private:
  void begin(const run_config& c) const {
    if (c.overwrite) remove_run();
    else if (!checkpoints_.steps().empty())
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

  void remove_run() const {
    for (u64 step : checkpoints_.steps()) ::unlink(checkpoints_.file_of(step).c_str());
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

  void write(const std::string& name, const std::string& text) const {
    const std::string path = path_ + '/' + name, part = path + ".part";
    std::FILE* f = std::fopen(part.c_str(), "we");
    const bool good = f && std::fwrite(text.data(), 1, text.size(), f) == text.size();
    if ((f && std::fclose(f) != 0) || !good || std::rename(part.c_str(), path.c_str()) != 0)
      fail(errc::resource, "cannot write '", path, "': ", std::strerror(errno), ": check the folder");
  }

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
