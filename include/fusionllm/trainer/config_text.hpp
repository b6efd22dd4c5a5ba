// SPDX-License-Identifier: Apache-2.0
// Values of a configuration as text: setting a key, checking its range, what peers must agree on, JSON for the run
// folder. Numbers are written shortest and read back to the same bits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "../core/error.hpp"
#include "../core/fnv.hpp"
#include "../transport/hello.hpp"
#include "config.hpp"
#include "json_text.hpp"
#include "nearest.hpp"

namespace fusionllm::inline v0 {

namespace detail {

inline bool same_key(std::string_view key, std::string_view given) {
  if (key.size() != given.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i)
    if (key[i] != (given[i] == '-' ? '_' : given[i])) return false;
  return true;
}

/// As the command line has a key: "--learning-rate".
inline std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

template <class Owner>
const basic_config_field<Owner>* find_field(std::span<const basic_config_field<Owner>> fields, std::string_view key) {
  for (const auto& f : fields)
    if (same_key(f.key, key)) return &f;
  return nullptr;
}

template <class T>
T parse_number(std::string_view key, std::string_view value, const char* what) {
  T x{};
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (problem != std::errc{} || end != value.data() + value.size() || value.empty())
    fail(errc::config, key, " is '", printable(value), "', expected ", what);
  return x;
}

inline bool has_choice(std::string_view choices, std::string_view value) {
  while (true) {
    const auto bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

}  // namespace detail

/// Errors: errc::config naming the key, its value and its range.
template <class Owner>
void check_field(const basic_config_field<Owner>& f, const Owner& owner) {
  if (f.integer && (owner.*f.integer < f.least || owner.*f.integer > f.most))
    fail(errc::config, f.key, " is ", owner.*f.integer, ", expected ", f.least, " to ", f.most);
  if (f.real) {
    const double x = owner.*f.real;
    if (!(f.above_low ? x > f.low : x >= f.low) || !(x <= f.high))
      fail(errc::config, f.key, " is ", x, ", expected ", f.above_low ? "above " : "", f.low, " to ", f.high);
  }
  if (!f.text) return;
  const std::string& value = owner.*f.text;
  if (value.size() > 4096) fail(errc::config, f.key, " has ", value.size(), " characters, expected 4096 at most");
  if (value.empty() && (f.choices.empty() || (Owner{}.*f.text).empty())) return;  // stands for what the help says
  if (!f.choices.empty() && !detail::has_choice(f.choices, value))
    fail(errc::config, f.key, " is '", printable(value), "', expected ", f.choices, nearest_text(value, f.choices, '|'));
}

/// Sets one key from text, as flags and environment give it. Errors: errc::config as `check_field`.
template <class Owner>
void set_field(const basic_config_field<Owner>& f, Owner& owner, std::string_view value) {
  if (f.integer) owner.*f.integer = detail::parse_number<i64>(f.key, value, "a whole number");
  else if (f.real) owner.*f.real = detail::parse_number<double>(f.key, value, "a number");
  else if (f.text) owner.*f.text = std::string(value);
  else if (value == "true" || value == "1") owner.*f.flag = true;
  else if (value == "false" || value == "0") owner.*f.flag = false;
  else fail(errc::config, f.key, " is '", printable(value), "', expected true or false");
  check_field(f, owner);
}

/// The value of a key, as `set_field` reads it.
template <class Owner>
std::string field_text(const basic_config_field<Owner>& f, const Owner& owner) {
  if (f.integer) return std::to_string(owner.*f.integer);
  if (f.real) return number_text(owner.*f.real);
  if (f.text) return owner.*f.text;
  return owner.*f.flag ? "true" : "false";
}

/// Checks every key and what keys must be to each other. Errors: errc::config.
inline void check(const run_config& c) {
  for (const auto& f : config_fields) check_field(f, c);
  if (c.micro_batches > c.batch)
    fail(errc::config, "micro_batches is ", c.micro_batches, ", expected ", c.batch, " (batch) at most");
  if (c.groups > c.micro_batches)
    fail(errc::config, "groups is ", c.groups, ", expected ", c.micro_batches, " (micro_batches) at most");
  if (c.min_learning_rate > c.learning_rate && c.learning_rate_schedule != "constant")
    fail(errc::config, "min_learning_rate is ", c.min_learning_rate, ", expected ", c.learning_rate,
         " (learning_rate) at most");
  if (c.spike_factor > 0 && c.spike_factor <= 1)  // every step of a run that does not learn would be a spike
    fail(errc::config, "spike_factor is ", c.spike_factor, ", expected 0 (never) or above 1");
  if (c.silence_timeout <= c.heartbeat)
    fail(errc::config, "silence_timeout is ", c.silence_timeout, " s, expected more than heartbeat = ", c.heartbeat, " s");
  if (c.resume && c.run.empty()) fail(errc::config, "resume is true without a run folder: say which with run");
  if (c.resume && c.overwrite) fail(errc::config, "resume and overwrite are both true: a run goes on or begins anew");
  const auto fits = [](const char* key, const std::string& value, std::size_t most) {  // a handshake
    if (value.size() > most) fail(errc::config, key, " has ", value.size(), " bytes, expected ", most, " at most");
  };
  fits("name", c.name, 200);
  fits("announce", c.announce, 200);
  fits("run_id", c.run_id, 200);
  fits("token", c.token, 1024);
  if (printable(c.run_id) != c.run_id) fail(errc::config, "run_id is '", printable(c.run_id), "', expected printable ASCII characters");
  if (c.emulate && c.topology.empty())
    fail(errc::config, "emulate is true without a topology: say which file with topology");
}

namespace detail {
inline std::vector<config_entry> entries_up_to(config_scope scope, const run_config& c, u64 data_digest) {
  std::vector<config_entry> all;
  for (const auto& f : config_fields)
    if (f.scope <= scope) all.push_back({std::string(f.key), field_text(f, c)});
  if (data_digest != 0) all.push_back({"data digest?", std::to_string(data_digest)});
  return all;
}
}  // namespace detail

/// What all peers of a run must have the same, for the handshake, which names the first key that differs.
/// `data_digest` is that of the content of the data; 0: this side has none.
inline std::vector<config_entry> agreed_entries(const run_config& c, u64 data_digest = 0) {
  return detail::entries_up_to(config_scope::agreed, c, data_digest);
}

/// What must be the same in a run that goes on from a checkpoint.
inline std::vector<config_entry> lasting_entries(const run_config& c, u64 data_digest = 0) {
  return detail::entries_up_to(config_scope::lasting, c, data_digest);
}

/// One number for such entries.
inline u64 digest_of(const std::vector<config_entry>& entries) {
  fnv h;
  for (const auto& e : entries) h.text(e.key).text(e.value);
  return h.value();
}

/// The configuration as a JSON object, a key a line, without secrets.
inline std::string to_json(const run_config& c) {
  json_text j(2);
  j.begin_object();
  for (const auto& f : config_fields) {
    if (f.scope == config_scope::secret) continue;
    if (f.integer) j.field(f.key, c.*f.integer);
    else if (f.real) j.field(f.key, c.*f.real);
    else if (f.text) j.field(f.key, std::string_view(c.*f.text));
    else j.field(f.key, c.*f.flag);
  }
  j.end_object();
  return j.take() + '\n';
}

}  // namespace fusionllm::inline v0
