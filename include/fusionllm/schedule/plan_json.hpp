// SPDX-License-Identifier: Apache-2.0
// Plans as JSON that a person can read, write and change by hand:
//   {"micro_batches": 8, "groups": 1, "schedule": "1f1b", "recompute": "block",
//    "stages": [{"peers": [0], "nodes": ["0-5", "28-30"]}, {"peers": [2], "nodes": ["h.1", "h.2"]},
//               {"peers": ["lab/0"], "nodes": "rest"}],
//    "codecs": [{"from": 0, "to": 2, "codec": "ada_top_k", "ratio": 20}]}
// Nodes are numbers, ranges, scopes (with all below them), operators without a scope by their name, or "rest". Model
// inputs need no place. Numbers of nodes and scopes are those that the `graph` command prints.
#pragma once

#include "../estimate/json_cursor.hpp"
#include "chain_plan.hpp"

namespace fusionllm::inline v0 {

namespace detail {

class plan_reader {
 public:
  plan_reader(const json_cursor& j, const graph_view& g, const std::vector<std::string>& peers, const plan& defaults)
      : j_(j), g_(g), peers_(peers), p_(defaults) {}

  plan read() {
    j_.only({"scheduler", "micro_batches", "groups", "schedule", "recompute", "stages", "codecs", "predicted_step_ms", "notes", "operators"});
    constexpr i64 many = 1 << 20;
    if (j_.has("operators")) {
      const i64 n = j_.at("operators").integer(0, many);
      if (n != operators())
        j_.at("operators").refuse("the plan was made for a model of " + std::to_string(n) + " operators, this one has " +
                                  std::to_string(operators()) + ": make the plan for this model");
    }
    p_.scheduler = j_.has("scheduler") ? plain(j_.at("scheduler")) : "by hand";
    if (j_.has("micro_batches")) p_.micro_batches = int(j_.at("micro_batches").integer(1, most_micro_batches));
    if (j_.has("groups")) p_.groups = int(j_.at("groups").integer(1, p_.micro_batches));
    if (j_.has("schedule")) read_schedule(j_.at("schedule"));
    if (j_.has("recompute")) read_recompute(j_.at("recompute"));
    read_stages();
    p_.codecs.clear();
    if (j_.has("codecs"))
      for (const json_cursor& c : j_.at("codecs").each()) read_codec(c);
    p_.notes.clear();
    if (j_.has("notes"))
      for (const json_cursor& n : j_.at("notes").each()) p_.notes.push_back(plain(n));
    p_.predicted_step =
        j_.has("predicted_step_ms") ? nanoseconds(j_.at("predicted_step_ms").number(0, 1e12, true) * 1e6 + 0.5) : 0;
    check(p_, g_, int(peers_.size()));
    return p_;
  }

 private:
  bool is_operator(int i) const { return !g_.nodes[std::size_t(i)].op->placeholder; }
  i64 operators() const {
    i64 n = 0;
    for (int i = 0; i < g_.size(); ++i) n += is_operator(i);
    return n;
  }

  void read_schedule(const json_cursor& s) {
    const std::string name = s.text();
    if (name == name_of(schedule_kind::gpipe)) p_.schedule = schedule_kind::gpipe;
    else if (name == name_of(schedule_kind::one_f_one_b)) p_.schedule = schedule_kind::one_f_one_b;
    else s.wrong("\"gpipe\" or \"1f1b\"");
  }
  void read_recompute(const json_cursor& r) {
    const std::string name = r.text();
    for (auto policy : {recompute_policy::none, recompute_policy::block, recompute_policy::selective})
      if (name == name_of(policy)) return void(p_.recompute = policy);
    r.wrong("\"none\", \"block\" or \"selective\"");
  }

  int read_peer(const json_cursor& x) const {
    if (!x.is_text()) return int(x.integer(0, i64(peers_.size()) - 1));
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (peers_[i] == x.text()) return int(i);
    x.wrong("the number or the name of a peer");
  }

  void read_stages() {
    p_.stage_of.assign(g_.nodes.size(), -1);
    p_.peers.clear();
    const auto stages = j_.at("stages").each();
    if (stages.empty()) j_.at("stages").refuse("a plan has at least one stage");
    const json_cursor* rest = nullptr;
    int rest_stage = -1;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      stages[s].only({"peers", "nodes"});
      p_.peers.emplace_back();
      for (const json_cursor& x : stages[s].at("peers").each()) p_.peers.back().push_back(read_peer(x));
      const json_cursor nodes = stages[s].at("nodes");
      const std::vector<json_cursor> parts = nodes.is_array() ? nodes.each() : std::vector<json_cursor>{nodes};
      for (const json_cursor& part : parts) {
        if (part.is_text() && part.text() == "rest") {
          if (rest) part.refuse("a second stage takes the rest");
          rest = &stages[s];
          rest_stage = int(s);
        } else {
          place(part, int(s));
        }
      }
    }
    for (int i = 0; i < g_.size(); ++i) {
      int& s = p_.stage_of[std::size_t(i)];
      if (!is_operator(i) || s >= 0) continue;
      if (!rest)
        j_.at("stages").refuse("no stage has node " + title(i) + ": add it to one, or give one stage the nodes \"rest\"");
      s = rest_stage;
    }
    place_inputs(g_, p_);
  }

  std::string title(int i) const {
    const node& n = g_.nodes[std::size_t(i)];
    return std::to_string(i) + " (" + std::string(n.scope.view()) + (n.scope.length ? " " : "") + std::string(n.op->name) + ")";
  }

  void put(const json_cursor& part, int i, int s) {
    if (!is_operator(i)) return;
    int& now = p_.stage_of[std::size_t(i)];
    if (now >= 0) part.refuse("node " + title(i) + " has a place already, in stages[" + std::to_string(now) + "]");
    now = s;
  }

  void place(const json_cursor& part, int s) {
    if (!part.is_text()) return put(part, int(part.integer(0, g_.size() - 1)), s);
    const std::string text = part.text();
    int first = 0, last = 0;
    if (range(text, first, last)) {
      if (first > last || last >= g_.size()) part.wrong("a range within 0-" + std::to_string(g_.size() - 1));
      for (int i = first; i <= last; ++i) put(part, i, s);
      return;
    }
    bool any = false;
    for (int i = 0; i < g_.size(); ++i) {
      const node& n = g_.nodes[std::size_t(i)];
      const std::string_view scope = n.scope.view();
      const bool inside = scope == text || (scope.size() > text.size() && scope.substr(0, text.size()) == text && scope[text.size()] == '.');
      if (!is_operator(i) || !(inside || (scope.empty() && n.op->name == text))) continue;
      any = true;
      put(part, i, s);
    }
    if (!any) part.wrong("a node's number, a range such as \"3-7\", a scope of the model, or \"rest\"");
  }

  // "12" or "3-17".
  static bool range(const std::string& text, int& first, int& last) {
    std::size_t at = 0;
    const auto digits = [&](int& n) {
      const std::size_t begin = at;
      for (n = 0; at < text.size() && text[at] >= '0' && text[at] <= '9' && at - begin < 8; ++at) n = n * 10 + (text[at] - '0');
      return at > begin;
    };
    if (!digits(first)) return false;
    last = first;
    if (at < text.size() && text[at] == '-') {
      ++at;
      if (!digits(last)) return false;
    }
    return at == text.size();
  }

  /// Text that a terminal may show.
  static std::string plain(const json_cursor& c) {
    std::string s = c.text();
    for (char ch : s)
      if (static_cast<unsigned char>(ch) < 0x20 || ch == 0x7F) c.refuse("control characters in a text: write plain words");
    return s;
  }
  void read_codec(const json_cursor& c) {
    c.only({"from", "to", "codec", "ratio"});
    link_codec x{read_peer(c.at("from")), read_peer(c.at("to")), c.at("codec").text(),
                 c.has("ratio") ? c.at("ratio").number(0, 1e6, true) : 1};
    if (x.from == x.to) c.refuse("from and to are one peer: nothing travels there, leave it out");
    for (const link_codec& o : p_.codecs)
      if (o.from == x.from && o.to == x.to) c.refuse("a second codec for this direction: leave one");
    p_.codecs.push_back(std::move(x));
  }

  const json_cursor& j_;
  const graph_view& g_;
  const std::vector<std::string>& peers_;
  plan p_;
};

}  // namespace detail

/// Names that a plan file may use for peers.
inline std::vector<std::string> peer_names(const cluster& c) {
  std::vector<std::string> r;
  for (const machine& m : c.peers) r.push_back(m.name);
  return r;
}

/// A checked plan from parsed JSON. `peers`: one name a peer, by which the file may call it instead of by its number. What the file leaves
/// out of micro_batches, groups, schedule and recompute is as in `defaults`. Errors: errc::plan, naming the key.
inline plan read_plan(const nlohmann::json& value, const graph_view& g, const std::vector<std::string>& peers,
                      const plan& defaults = {}) {
  const json_cursor j(value, "", errc::plan);
  return detail::plan_reader(j, g, peers, defaults).read();
}

inline plan parse_plan(std::string_view text, const graph_view& g, const std::vector<std::string>& peers,
                       const plan& defaults = {}, const std::string& what = "the plan") {
  return read_plan(parse_json(text, errc::plan, what), g, peers, defaults);
}

inline plan load_plan(const std::string& file, const graph_view& g, const std::vector<std::string>& peers,
                      const plan& defaults = {}) {
  try {
    return parse_plan(read_small_file(file, errc::plan), g, peers, defaults, file);
  } catch (const error& e) {
    const std::string text = e.what();
    if (text.find(file) != std::string::npos) throw;
    fail(e.code(), file, ": ", text);
  }
}

/// The nodes of a stage as ranges of numbers, "0-5, 28-30"; model inputs are bridged.
inline std::vector<std::string> node_ranges(const graph_view& g, const plan& p, int stage) {
  std::vector<std::string> r;
  for (int i = 0; i < g.size(); ++i) {
    const auto mine = [&](int k) { return p.stage_of[std::size_t(k)] == stage || g.nodes[std::size_t(k)].op->placeholder; };
    if (!mine(i) || g.nodes[std::size_t(i)].op->placeholder) continue;
    int last = i;
    for (int k = i; k < g.size() && mine(k); ++k)
      if (!g.nodes[std::size_t(k)].op->placeholder) last = k;
    r.push_back(last == i ? std::to_string(i) : std::to_string(i) + "-" + std::to_string(last));
    i = last;
  }
  return r;
}

/// As `read_plan` takes it: a line for each stage, codec and note.
inline std::string write_plan(const graph_view& g, const plan& p) {
  using json = nlohmann::ordered_json;
  int operators = 0;
  for (const node& n : g.nodes) operators += !n.op->placeholder;
  json stages = json::array(), codecs = json::array(), notes = json::array();
  for (int s = 0; s < p.stages(); ++s)
    stages.push_back({{"peers", p.peers[std::size_t(s)]}, {"nodes", node_ranges(g, p, s)}});
  for (const link_codec& c : p.codecs)
    codecs.push_back({{"from", c.from}, {"to", c.to}, {"codec", c.codec}, {"ratio", c.ratio}});
  for (const std::string& n : p.notes) notes.push_back(n);

  std::string out = "{\n \"scheduler\": " + json(p.scheduler.empty() ? "by hand" : p.scheduler).dump() + ",\n";
  out += " \"operators\": " + std::to_string(operators) + ",\n";
  out += " \"micro_batches\": " + std::to_string(p.micro_batches) + ",\n \"groups\": " + std::to_string(p.groups) + ",\n";
  out += " \"schedule\": \"" + std::string(name_of(p.schedule)) + "\",\n \"recompute\": \"" + name_of(p.recompute) + "\"";
  if (p.predicted_step > 0) out += ",\n \"predicted_step_ms\": " + json(double(p.predicted_step) / 1e6).dump();
  const auto lines = [&](const char* key, const json& list) {
    if (list.empty()) return;
    out += ",\n \"" + std::string(key) + "\": [";
    for (std::size_t i = 0; i < list.size(); ++i) out += (i ? ",\n  " : "\n  ") + list[i].dump();
    out += "\n ]";
  };
  lines("stages", stages);
  lines("codecs", codecs);
  lines("notes", notes);
  return out + "\n}\n";
}

}  // namespace fusionllm::inline v0
