// SPDX-License-Identifier: Apache-2.0
// The description of where a run takes place: sites with devices, what joins them, what each reaches. It says what a
// person knows (teraflops, megabits); `expand` turns it into the integers that planner and simulator compute with.
// docs/topology.md documents the file.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "cluster.hpp"

namespace fusionllm::inline v0 {

/// Speed of one direction between two places.
struct link_speed {
  double mbps = 0;        ///< 1e6 bits per second
  double latency_ms = 0;  ///< one way
};

struct device_description {
  std::string name;          ///< empty: "site/number"
  double tflops = 0;         ///< 1e12 floating-point operations per second
  double memory_gib = 0;     ///< for weights, optimizer and activations
  double efficiency = 1;     ///< the part of `tflops` that training reaches
  double memory_gbps = 0;    ///< 1e9 bytes per second; 0: moving bytes costs nothing beside the flops
  double launch_us = 5;      ///< added to every operator
};

struct site_description {
  std::string name;
  std::vector<device_description> devices;
  std::optional<link_speed> inside;  ///< between two devices of the site; none: they cannot reach each other
  double line_up_mbps = 0;           ///< what all its devices together send to other sites; 0: no limit
  double line_down_mbps = 0;
};

/// One direction between two sites.
struct site_link {
  std::string from;
  std::string to;
  link_speed speed;
};

struct topology {
  std::string description;
  std::vector<site_description> sites;
  std::vector<site_link> links;  ///< sites without a link cannot reach each other

  int site(std::string_view name) const {
    for (std::size_t i = 0; i < sites.size(); ++i)
      if (sites[i].name == name) return int(i);
    return -1;
  }
};

namespace detail {

/// value * scale rounded to an integer of at least `least`. NaN, infinities and what does not fit are errors.
inline u64 whole(double value, double scale, u64 least, const std::string& what) {
  const double x = value * scale;
  if (!(x >= 0)) fail(errc::topology, what, " is ", value, ": expected a finite number that is not negative");
  if (!(x < 9e18)) fail(errc::topology, what, " is ", value, ": too large, expected less than ", 9e18 / scale);
  const u64 n = u64(x + 0.5);
  if (n < least) fail(errc::topology, what, " is ", value, ": too small, it would count as ", n);
  return n;
}

inline path path_of(const link_speed& s, const std::string& what) {
  return {nanoseconds(whole(s.latency_ms, 1e6, 0, what + " latency_ms")), whole(s.mbps, 1e6 / 8, 1, what + " mbps")};
}

inline machine machine_of(const site_description& s, int site, std::size_t number) {
  const device_description& d = s.devices[number];
  machine m;
  m.name = d.name.empty() ? s.name + "/" + std::to_string(number) : d.name;
  m.site = site;
  m.flops_per_second = whole(d.tflops * d.efficiency, 1e12, 1, m.name + " tflops x efficiency");
  m.memory_bytes = whole(d.memory_gib, double(1ull << 30), 1, m.name + " memory_gib");
  m.memory_bytes_per_second = whole(d.memory_gbps, 1e9, 0, m.name + " memory_gbps");
  m.launch = nanoseconds(whole(d.launch_us, 1e3, 0, m.name + " launch_us"));
  return m;
}

// A site's line is the narrowest place of every way out of it, even for a peer alone.
inline void narrow(path& p, u64 line) {
  if (line != 0 && line < p.bytes_per_second) p.bytes_per_second = line;
}

}  // namespace detail

/// Peers in the order of sites and devices. Errors: errc::topology for numbers that are not finite, negative or zero
/// where they may not be, unknown sites, and two links for one direction.
inline cluster expand(const topology& t) {
  cluster c;
  std::vector<path> between_sites(t.sites.size() * t.sites.size());
  for (std::size_t s = 0; s < t.sites.size(); ++s) {
    const site_description& site = t.sites[s];
    c.sites.push_back({site.name, detail::whole(site.line_up_mbps, 1e6 / 8, 0, site.name + " line up_mbps"),
                       detail::whole(site.line_down_mbps, 1e6 / 8, 0, site.name + " line down_mbps")});
    if (site.inside) between_sites[s * t.sites.size() + s] = detail::path_of(*site.inside, site.name + " inside");
    for (std::size_t d = 0; d < site.devices.size(); ++d) c.peers.push_back(detail::machine_of(site, int(s), d));
  }
  std::map<std::string_view, int> numbers;
  for (std::size_t s = t.sites.size(); s-- > 0;) numbers[t.sites[s].name] = int(s);
  const auto number = [&](const std::string& name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? -1 : found->second;
  };
  for (const site_link& l : t.links) {
    const int a = number(l.from), b = number(l.to);
    if (a < 0 || b < 0) fail(errc::topology, "a link joins ", l.from, " and ", l.to, ": no site is called ", a < 0 ? l.from : l.to);
    if (a == b) fail(errc::topology, "a link joins ", l.from, " with itself: say `inside` of the site");
    path& p = between_sites[std::size_t(a) * t.sites.size() + std::size_t(b)];
    if (p.open()) fail(errc::topology, "two links go from ", l.from, " to ", l.to, ": leave one");
    p = detail::path_of(l.speed, l.from + " to " + l.to);
    detail::narrow(p, c.sites[std::size_t(a)].up);
    detail::narrow(p, c.sites[std::size_t(b)].down);
  }
  for (const machine& a : c.peers)
    for (const machine& b : c.peers)
      c.paths.push_back(between_sites[std::size_t(a.site) * t.sites.size() + std::size_t(b.site)]);
  check(c);
  return c;
}

}  // namespace fusionllm::inline v0
