// SPDX-License-Identifier: Apache-2.0
// Configuration files: a JSON object with the keys of the flags. A key that is unknown, comes twice or has a value of
// another kind is an error that names it.
#pragma once

#include "../estimate/json_cursor.hpp"
#include "../trainer/config_text.hpp"
#include "../trainer/data_file.hpp"

namespace fusionllm::inline v0 {

namespace detail {

[[noreturn]] inline void unknown_config_key(const std::string& path, std::string_view key) {
  nearest_name near(key);
  for (const auto& f : config_fields) near.offer(f.key);
  const std::string hint = near.text();
  fail(errc::config, path, ": unknown key '", printable(key), "'", hint.empty() ? ": --help lists the keys" : hint);
}

inline void set_from_json(const config_field& f, const nlohmann::json& value, const std::string& path, run_config& c) {
  const char* expected = f.integer ? "a whole number" : f.real ? "a number" : f.text ? "a text" : "true or false";
  const bool fits = f.integer ? value.is_number_integer() : f.real ? value.is_number() : f.text ? value.is_string() : value.is_boolean();
  if (!fits)
    fail(errc::config, path, ": ", f.key, " is ", printable(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 60),
         ", expected ", expected);
  try {
    if (f.integer && value.is_number_unsigned() && value.get<u64>() > u64(INT64_MAX))
      fail(errc::config, f.key, " is ", value.get<u64>(), ", expected ", f.least, " to ", f.most);
    if (f.integer) c.*f.integer = value.get<i64>();
    else if (f.real) c.*f.real = value.get<double>();
    else if (f.text) c.*f.text = value.get<std::string>();
    else c.*f.flag = value.get<bool>();
    check_field(f, c);
  } catch (const error& e) {
    fail(errc::config, path, ": ", e.what());
  }
}

}  // namespace detail

/// Sets the keys that `text` has, and leaves the others. `path` is for messages. Errors: errc::config.
inline void apply_json(std::string_view text, const std::string& path, run_config& c) {
  const nlohmann::json all = parse_json(text, errc::config, path);
  if (!all.is_object()) fail(errc::config, path, ": expected a JSON object of keys and values");
  for (const auto& item : all.items()) {
    const config_field* f = nullptr;
    for (const auto& known : config_fields)
      if (known.key == item.key()) f = &known;
    if (!f) detail::unknown_config_key(path, item.key());
    detail::set_from_json(*f, item.value(), path, c);
  }
}

/// The same from a file. Errors: errc::config.
inline void apply_config_file(const std::string& path, run_config& c) {
  const auto bytes = detail::read_whole_file(path, errc::config, "configuration file");
  apply_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, c);
}

}  // namespace fusionllm::inline v0
