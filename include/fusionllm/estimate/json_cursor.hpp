// SPDX-License-Identifier: Apache-2.0
// Reading JSON that a person wrote: every value knows its place in the file ("sites[2].inside.mbps"), and every error
// says place, what was found and what was expected. Nothing is read by default that was misspelt.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../core/error.hpp"
#include "../core/types.hpp"

namespace fusionllm::inline v0 {

/// A value and its place. Every member that does not find what it is asked for throws the code it was made with.
class json_cursor {
 public:
  json_cursor(const nlohmann::json& value, std::string place, errc code)
      : value_(&value), place_(std::move(place)), code_(code) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& place() const { return place_; }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_number() const { return value_->is_number(); }
  bool is_text() const { return value_->is_string(); }
  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }

  /// The value of a key that must be there.
  json_cursor at(const char* key) const {
    if (!has(key)) fail(code_, at_place(), "no key \"", key, "\": it is required");
    return {value_->at(key), place_.empty() ? key : place_ + "." + key, code_};
  }
  std::vector<json_cursor> each() const {
    if (!is_array()) wrong("a list");
    std::vector<json_cursor> r;
    for (std::size_t i = 0; i < value_->size(); ++i)
      r.push_back({(*value_)[i], place_ + "[" + std::to_string(i) + "]", code_});
    return r;
  }

  /// Refuses every key that is not among these.
  void only(std::initializer_list<std::string_view> known) const {
    if (!is_object()) wrong("an object");
    for (const auto& item : value_->items()) {
      bool found = false;
      for (std::string_view k : known) found = found || k == item.key();
      if (found) continue;
      std::string names;
      for (std::string_view k : known) names += (names.empty() ? "" : ", ") + std::string(k);
      fail(code_, at_place(), "unknown key ", shown(item.key()), ", expected some of: ", names);
    }
  }

  std::string text() const {
    if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) wrong("a text that is not empty");
    return value_->get<std::string>();
  }
  std::string text(const char* key, const std::string& otherwise) const { return has(key) ? at(key).text() : otherwise; }

  bool truth() const {
    if (!value_->is_boolean()) wrong("true or false");
    return value_->get<bool>();
  }

  i64 integer(i64 least, i64 most) const {
    const bool fits = value_->is_number_integer()
                      && (!value_->is_number_unsigned() || value_->get<u64>() <= u64(most < 0 ? 0 : most));
    if (!fits || value_->get<i64>() < least || value_->get<i64>() > most)
      wrong("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value_->get<i64>();
  }

  /// A finite number from `least` to `most`; `least` itself only where it is not zero or `zero_allowed`.
  double number(double least, double most, bool zero_allowed = false) const {
    const double x = value_->is_number() ? value_->get<double>() : std::nan("");
    if (!(x >= least && x <= most) || (x == 0 && !zero_allowed)) {
      std::ostringstream range;
      range << "a number " << (least == 0 && !zero_allowed ? "above " : "from ") << least << (most < 1e18 ? " to " : "");
      if (most < 1e18) range << most;
      else if (!(least == 0 && !zero_allowed)) range << " on";
      wrong(range.str());
    }
    return x;
  }

  [[noreturn]] void wrong(const std::string& expected) const {
    fail(code_, place_.empty() ? "the file" : place_, ": found ", shown(), ", expected ", expected);
  }
  [[noreturn]] void refuse(const std::string& why) const { fail(code_, at_place(), why); }

 private:
  std::string at_place() const { return place_.empty() ? "" : place_ + ": "; }
  std::string shown() const { return shown(*value_); }
  static std::string shown(const nlohmann::json& value) {
    std::string s = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (s.size() > 60) s = s.substr(0, 57) + "...";
    return s;
  }

  const nlohmann::json* value_;
  std::string place_;
  errc code_;
};

inline constexpr int deepest_json = 64;

/// Parses text; a key that comes twice in one object is an error, as is everything that is not JSON, and lists and
/// objects nested deeper than `deepest_json`: what walks over them later takes stack for each level.
inline nlohmann::json parse_json(std::string_view text, errc code, const std::string& what) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (depth >= deepest_json) fail(code, what, ": lists and objects are nested deeper than ", deepest_json, ", expected no file like that");
    if (event == nlohmann::json::parse_event_t::object_start) keys.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) keys.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
  };
  nlohmann::json j;
  try {
    j = nlohmann::json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& e) {
    std::string why = e.what();
    if (const auto end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';  // it quotes the file
    fail(code, what, " is not JSON: ", why);
  }
  if (!twice.empty()) fail(code, what, ": the key \"", twice, "\" comes twice in one object: leave one");
  return j;
}

/// The bytes of a small file. Errors: `code` when it cannot be read, is no regular file (a pipe may never end) or is
/// larger than 16 MiB.
inline std::string read_small_file(const std::string& file, errc code) {
  constexpr std::size_t limit = std::size_t(16) << 20;
  const auto refuse = [&](const auto&... why) { fail(code, "cannot read ", file, ": ", why...); };
  struct open_file {
    int number;
    ~open_file() {
      if (number >= 0) ::close(number);
    }
  };
  const open_file in{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info{};
  if (in.number < 0 || ::fstat(in.number, &info) != 0) refuse(std::strerror(errno), ": give the path of a readable file");
  if (!S_ISREG(info.st_mode)) refuse("it is a ", S_ISDIR(info.st_mode) ? "directory" : "pipe or a device", ", expected a regular file");
  std::string text;
  std::vector<char> part(64 << 10);
  for (;;) {
    const auto n = ::read(in.number, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(std::strerror(errno), ": give the path of a readable file");
    if (n == 0) return text;
    text.append(part.data(), std::size_t(n));
    if (text.size() > limit) fail(code, file, " is larger than 16 MiB: it is no description made for this");
  }
}

}  // namespace fusionllm::inline v0
