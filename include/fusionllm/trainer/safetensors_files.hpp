// SPDX-License-Identifier: Apache-2.0
// The weights of one model: a safetensors file, or the shards that an index beside them names. The index is the list of
// tensors: what shards hold besides is not looked at.
#pragma once

#include <memory>

#include "../estimate/json_cursor.hpp"
#include "safetensors.hpp"

namespace fusionllm::inline v0 {

class safetensors_files {
 public:
  struct entry {
    const safetensors_file* file;
    const stored_tensor* tensor;
  };

  /// `path`: a file, an index (*.index.json), or a folder with model.safetensors.index.json or model.safetensors.
  /// Errors: errc::checkpoint.
  explicit safetensors_files(const std::string& path) : path_(resolved(path)) {
    if (!path_.ends_with(".json")) {
      const safetensors_file& f = *files_.emplace(path_, std::make_unique<safetensors_file>(path_)).first->second;
      for (const stored_tensor& t : f.tensors()) entries_.push_back({&f, &t});
      return;
    }
    const auto index = parse_json(read_small_file(path_, errc::checkpoint), errc::checkpoint, path_);
    const auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (!index.is_object() || map == index.end() || !map->is_object())
      fail(errc::checkpoint, "index '", path_, "' has no object weight_map of tensors and files");
    for (const auto& item : map->items()) add(item.key(), item.value());
  }

  /// Of the file, or of the index.
  const std::string& path() const { return path_; }
  std::size_t file_count() const { return files_.size(); }
  /// Sorted by name.
  const std::vector<entry>& tensors() const { return entries_; }
  /// Null tensor if there is none.
  entry find(std::string_view name) const {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), name,
                                        [](const entry& e, std::string_view n) { return e.tensor->name < n; });
    return found != entries_.end() && found->tensor->name == name ? *found : entry{nullptr, nullptr};
  }

 private:
  static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  static std::string resolved(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return path;
    for (const char* name : {"/model.safetensors.index.json", "/model.safetensors"})
      if (exists(path + name)) return path + name;
    if (exists(path + "/pytorch_model.bin"))
      fail(errc::checkpoint, "folder '", path, "' has its weights in pytorch_model.bin, a Python pickle: convert it with the "
           "package safetensors");
    fail(errc::checkpoint, "folder '", path, "' has neither model.safetensors nor model.safetensors.index.json: name the file");
  }

  void add(const std::string& name, const nlohmann::json& value) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos || shard == "..")
      fail(errc::checkpoint, "index '", path_, "': '", printable(name), "' is in '", printable(shard),
           "', expected the name of a file beside the index");
    auto& file = files_[shard];
    if (!file) file = std::make_unique<safetensors_file>(path_.substr(0, path_.rfind('/') + 1) + shard);
    const stored_tensor* t = file->find(name);
    if (!t)
      fail(errc::checkpoint, "index '", path_, "' says that '", printable(name), "' is in '", printable(shard),
           "', which has no such tensor");
    entries_.push_back({file.get(), t});
  }

  std::string path_;
  std::map<std::string, std::unique_ptr<safetensors_file>> files_;
  std::vector<entry> entries_;
};

}  // namespace fusionllm::inline v0
