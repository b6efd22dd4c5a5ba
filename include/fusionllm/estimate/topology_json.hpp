// SPDX-License-Identifier: Apache-2.0
// Reads a topology from JSON. docs/topology.md documents the form; whatever it does not know is an error that names the
// key, so that a misspelt speed is never silently another one.
#pragma once

#include "json_cursor.hpp"
#include "topology.hpp"

namespace fusionllm::inline v0 {

namespace detail {

/// No machine and no link is beyond this; larger numbers are slips of units.
inline constexpr double largest_number = 1e9;
inline constexpr i64 most_peers = 4096;
inline constexpr std::size_t longest_name = 200;  ///< what a handshake carries

inline link_speed read_speed(const json_cursor& j) {
  return {j.at("mbps").number(0, largest_number), j.at("latency_ms").number(0, largest_number, true)};
}

// Values of a device, each from its own entry or else from the site.
inline device_description read_device(const json_cursor& site, const json_cursor* own) {
  const auto value = [&](const char* key, double otherwise, bool required, double most, bool zero_allowed) {
    for (const json_cursor* j : {own, &site})
      if (j && j->has(key)) return j->at(key).number(0, most, zero_allowed);
    if (required) (own ? *own : site).at(key);
    return otherwise;
  };
  device_description d;
  d.tflops = value("tflops", 0, true, largest_number, false);
  d.memory_gib = value("memory_gib", 0, true, largest_number, false);
  d.efficiency = value("efficiency", d.efficiency, false, 1, false);
  d.memory_gbps = value("memory_gbps", d.memory_gbps, false, largest_number, false);
  d.launch_us = value("launch_us", d.launch_us, false, largest_number, true);
  return d;
}

inline site_description read_site(const json_cursor& j) {
  j.only({"name", "devices", "tflops", "memory_gib", "efficiency", "memory_gbps", "launch_us", "inside", "line"});
  site_description s;
  s.name = j.at("name").text();
  const json_cursor devices = j.at("devices");
  if (devices.is_array()) {
    for (const json_cursor& d : devices.each()) {
      d.only({"name", "count", "tflops", "memory_gib", "efficiency", "memory_gbps", "launch_us"});
      const i64 count = d.has("count") ? d.at("count").integer(1, most_peers) : 1;
      if (d.has("name") && count > 1) d.refuse("a named device is one device: leave out name or count");
      for (i64 i = 0; i < count; ++i) {
        s.devices.push_back(read_device(j, &d));
        s.devices.back().name = d.text("name", "");
      }
    }
    if (s.devices.empty()) devices.refuse("a site has at least one device");
  } else {
    if (!devices.is_number()) devices.wrong("a number of devices or a list of them");
    s.devices.assign(std::size_t(devices.integer(1, most_peers)), read_device(j, nullptr));
  }
  if (j.has("inside")) {
    j.at("inside").only({"mbps", "latency_ms"});
    s.inside = read_speed(j.at("inside"));
  } else if (s.devices.size() > 1) {
    j.refuse("no key \"inside\": it is required of a site with several devices");
  }
  if (j.has("line")) {
    const json_cursor line = j.at("line");
    line.only({"mbps", "up_mbps", "down_mbps"});
    if (line.has("mbps") == (line.has("up_mbps") || line.has("down_mbps")))
      line.refuse("say mbps, or up_mbps and down_mbps");
    s.line_up_mbps = line.at(line.has("mbps") ? "mbps" : "up_mbps").number(0, largest_number);
    s.line_down_mbps = line.at(line.has("mbps") ? "mbps" : "down_mbps").number(0, largest_number);
  }
  return s;
}

using site_pairs = std::set<std::pair<std::string, std::string>>;

// `between` says both directions, `from` and `to` one. `joined`: the directions that have a link.
inline void read_link(const json_cursor& j, topology& t, const std::set<std::string>& sites, site_pairs& joined) {
  j.only({"between", "from", "to", "mbps", "latency_ms"});
  std::vector<json_cursor> ends;
  if (j.has("between")) {
    if (j.has("from") || j.has("to")) j.refuse("say between (both directions), or from and to (one direction)");
    ends = j.at("between").each();
    if (ends.size() != 2) j.at("between").wrong("the names of two sites");
  } else {
    if (!j.has("from")) j.refuse("no key \"between\" (both directions) and no \"from\" (one direction): it is required");
    ends = {j.at("from"), j.at("to")};
  }
  for (const json_cursor& e : ends)
    if (!sites.contains(e.text())) e.wrong("the name of a site of this file");
  if (ends[0].text() == ends[1].text()) j.refuse("joins " + ends[0].text() + " with itself: say \"inside\" of the site");
  const link_speed speed = read_speed(j);
  const auto add = [&](const std::string& from, const std::string& to) {
    if (!joined.insert({from, to}).second) j.refuse("a second link from " + from + " to " + to + ": leave one");
    t.links.push_back({from, to, speed});
  };
  add(ends[0].text(), ends[1].text());
  if (j.has("between")) add(ends[1].text(), ends[0].text());
}

inline void check_names(const cluster& c) {
  std::set<std::string> names;
  for (const machine& m : c.peers) {
    if (m.name.size() > longest_name)
      fail(errc::topology, "the name of a device has ", m.name.size(), " bytes, expected at most ", longest_name, ": ", m.name.substr(0, 40), "...");
    if (!names.insert(m.name).second) fail(errc::topology, "two devices are called ", m.name, ": give one another name");
  }
}

}  // namespace detail

/// Errors: errc::topology, naming the key.
inline topology read_topology(const nlohmann::json& value) {
  const json_cursor j(value, "", errc::topology);
  j.only({"description", "sites", "links"});
  topology t;
  t.description = j.text("description", "");
  i64 peers = 0;
  std::set<std::string> names;
  for (const json_cursor& s : j.at("sites").each()) {
    site_description site = detail::read_site(s);
    if (!names.insert(site.name).second) s.at("name").refuse("a second site is called " + site.name + ": give it another name");
    peers += i64(site.devices.size());
    if (peers > detail::most_peers) s.at("devices").refuse("more than " + std::to_string(detail::most_peers) + " devices in all");
    t.sites.push_back(std::move(site));
  }
  if (t.sites.empty()) j.at("sites").refuse("a topology has at least one site");
  detail::site_pairs joined;
  if (j.has("links"))
    for (const json_cursor& l : j.at("links").each()) detail::read_link(l, t, names, joined);
  detail::check_names(expand(t));  // expand refuses numbers that vanish in whole bytes and nanoseconds
  return t;
}

inline topology parse_topology(std::string_view text, const std::string& what = "the topology") {
  return read_topology(parse_json(text, errc::topology, what));
}

inline topology load_topology(const std::string& file) {
  try {
    return parse_topology(read_small_file(file, errc::topology), file);
  } catch (const error& e) {
    const std::string text = e.what();
    if (text.find(file) != std::string::npos) throw;
    fail(e.code(), file, ": ", text);
  }
}

}  // namespace fusionllm::inline v0
