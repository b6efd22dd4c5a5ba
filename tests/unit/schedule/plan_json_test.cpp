// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/schedule/plan_json.hpp>

#include "catch.hpp"
#include "planning_models.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using namespace planning_test;
using fl::errc;
using fusionllm_test::error_of;

namespace {

const std::vector<std::string> peers{"lab/0", "lab/1", "home/0"};
const fl::graph_view g = fl::graph_of<gpt<2, 16>>();

fl::plan read(const std::string& text) { return fl::parse_plan(text, g, peers); }
std::vector<int> nodes_of(const fl::plan& p, int stage) {
  std::vector<int> r;
  for (int i = 0; i < g.size(); ++i)
    if (p.stage_of[std::size_t(i)] == stage && !g.nodes[std::size_t(i)].op->placeholder) r.push_back(i);
  return r;
}

const char* const good = R"({"micro_batches": 8, "groups": 2, "schedule": "gpipe", "recompute": "block",
  "stages": [{"peers": [0, 1], "nodes": ["0-6", 7]}, {"peers": ["home/0"], "nodes": "rest"}],
  "codecs": [{"from": 0, "to": "home/0", "codec": "ada_top_k", "ratio": 12.5}], "notes": ["mine"]})";

fusionllm_test::caught changed(const char* pointer, const char* value) {
  nlohmann::json j = nlohmann::json::parse(good);
  const nlohmann::json::json_pointer at(pointer);
  if (value) j[at] = nlohmann::json::parse(value);
  else j[at.parent_pointer()].erase(at.back());
  return error_of([&] { fl::read_plan(j, g, peers); });
}

}  // namespace

TEST_CASE("a plan made by hand") {
  const fl::plan p = read(good);
  CHECK(p.scheduler == "by hand");
  CHECK(p.micro_batches == 8);
  CHECK(p.groups == 2);
  CHECK(p.schedule == fl::schedule_kind::gpipe);
  CHECK(p.recompute == fl::recompute_policy::block);
  CHECK(p.peers == std::vector<std::vector<int>>{{0, 1}, {2}});
  CHECK(nodes_of(p, 0) == std::vector<int>{2, 3, 4, 5, 6, 7});
  CHECK(p.stage_of[0] == 0);  // tokens are read where the embedding is
  CHECK(p.stage_of[1] == 1);
  REQUIRE(p.codecs.size() == 1);
  CHECK(p.codecs[0].to == 2);
  CHECK(p.codecs[0].ratio == 12.5);
  CHECK(p.notes == std::vector<std::string>{"mine"});
}

TEST_CASE("scopes take all below them, operators without a scope answer to their names") {
  const fl::plan p = read(R"({"stages": [{"peers": [0], "nodes": ["embedding", "wpe", "h.0", "ln", "cross_entropy"]},
                                          {"peers": [1], "nodes": ["h.1"]}, {"peers": [2], "nodes": "rest"}]})");
  for (int i : nodes_of(p, 1)) CHECK(g.nodes[std::size_t(i)].scope.view().substr(0, 3) == "h.1");
  CHECK(nodes_of(p, 1).size() == 9 + 1);
  CHECK(nodes_of(p, 2) == std::vector<int>{g.size() - 2});  // the projection
}

TEST_CASE("what is left out is as the defaults say") {
  fl::plan defaults;
  defaults.micro_batches = 6;
  defaults.groups = 3;
  defaults.schedule = fl::schedule_kind::gpipe;
  defaults.recompute = fl::recompute_policy::selective;
  const fl::plan p = fl::parse_plan(R"({"stages": [{"peers": [1], "nodes": "rest"}]})", g, peers, defaults);
  CHECK(p.micro_batches == 6);
  CHECK(p.groups == 3);
  CHECK(p.schedule == fl::schedule_kind::gpipe);
  CHECK(p.recompute == fl::recompute_policy::selective);
}

TEST_CASE("a plan that was written is read as the same") {
  fl::plan p = read(good);
  for (int i = 2; i < g.size(); ++i) p.stage_of[std::size_t(i)] = i < 5 || i > 14;
  fl::place_inputs(g, p);
  p.predicted_step = 1'234'567;
  const std::string text = fl::write_plan(g, p);
  const fl::plan q = read(text);
  CHECK(q.stage_of == p.stage_of);
  CHECK(q.peers == p.peers);
  CHECK(q.micro_batches == p.micro_batches);
  CHECK(q.groups == p.groups);
  CHECK(q.schedule == p.schedule);
  CHECK(q.recompute == p.recompute);
  CHECK(q.predicted_step == p.predicted_step);
  CHECK(q.notes == p.notes);
  REQUIRE(q.codecs.size() == 1);
  CHECK(q.codecs[0].ratio == p.codecs[0].ratio);
  CHECK(fl::write_plan(g, q) == text);
  CHECK(text.find("\"2-4\",\"15-") != std::string::npos);
}

TEST_CASE("every policy of recomputation is written and read") {
  fl::plan p = read(good);
  for (auto policy : {fl::recompute_policy::none, fl::recompute_policy::block, fl::recompute_policy::selective}) {
    p.recompute = policy;
    CHECK(read(fl::write_plan(g, p)).recompute == policy);
  }
}

TEST_CASE("each wrong value is an error by its key") {
  CHECK(changed("/stages", nullptr).says(errc::plan, "\"stages\"", "required"));
  CHECK(changed("/stages", "[]").says(errc::plan, "stages", "at least one"));
  CHECK(changed("/stages/0/peers", nullptr).says(errc::plan, "stages[0]", "\"peers\""));
  CHECK(changed("/stages/0/nodes", nullptr).says(errc::plan, "stages[0]", "\"nodes\""));
  CHECK(changed("/stages/0/peers", "[3]").says(errc::plan, "stages[0].peers[0]", "found 3", "0 to 2"));
  CHECK(changed("/stages/0/peers", "[\"moon\"]").says(errc::plan, "stages[0].peers[0]", "moon"));
  CHECK(changed("/stages/0/peers", "[]").says(errc::plan, "stage 0 has no peer"));
  CHECK(changed("/stages/0/peers", "[0, 2]").says(errc::plan, "peer 2 runs stages 0 and 1"));
  CHECK(changed("/stages/0/nodes", "[\"9-5\"]").says(errc::plan, "stages[0].nodes[0]", "range"));
  CHECK(changed("/stages/0/nodes", "[\"5-900\"]").says(errc::plan, "stages[0].nodes[0]", "range"));
  CHECK(changed("/stages/0/nodes", "[900]").says(errc::plan, "stages[0].nodes[0]"));
  CHECK(changed("/stages/0/nodes", "[-1]").says(errc::plan, "stages[0].nodes[0]"));
  CHECK(changed("/stages/0/nodes", "[\"h.7\"]").says(errc::plan, "stages[0].nodes[0]", "h.7", "scope"));
  CHECK(changed("/stages/0/nodes", "[\"2-4\", 3]").says(errc::plan, "stages[0].nodes[1]", "node 3", "stages[0]"));
  CHECK(changed("/stages/0/nodes", "[\"rest\"]").says(errc::plan, "second stage takes the rest"));
  CHECK(changed("/stages/0/nodes", "[true]").says(errc::plan, "stages[0].nodes[0]"));
  CHECK(changed("/stages/1/nodes", "[\"8-12\"]").says(errc::plan, "no stage has node 13"));
  CHECK(changed("/stages/1/node", "[]").says(errc::plan, "stages[1]", "\"node\""));
  CHECK(changed("/micro_batches", "0").says(errc::plan, "micro_batches"));
  CHECK(changed("/groups", "9").says(errc::plan, "groups", "1 to 8"));
  CHECK(changed("/groups", "3").says(errc::plan, "2 replicas", "groups = 3"));
  CHECK(changed("/schedule", "\"zb\"").says(errc::plan, "schedule", "1f1b"));
  CHECK(changed("/recompute", "\"all\"").says(errc::plan, "recompute", "found \"all\"", "selective"));
  CHECK(changed("/recompute", "true").says(errc::plan, "recompute"));
  CHECK(changed("/codecs/0/from", "7").says(errc::plan, "codecs[0].from"));
  CHECK(changed("/codecs/0/codec", "3").says(errc::plan, "codecs[0].codec"));
  CHECK(changed("/codecs/0/ratio", "-1").says(errc::plan, "codecs[0].ratio"));
  CHECK(changed("/codecs/1", R"({"from": 0, "to": 2, "codec": "x"})").says(errc::plan, "codecs[1]", "second codec"));
  CHECK(changed("/operators", "3").says(errc::plan, "operators", "3 operators"));
  CHECK(changed("/stage", "1").says(errc::plan, "\"stage\""));
  CHECK(changed("/codecs/0/to", "0").says(errc::plan, "codecs[0]", "one peer"));
  CHECK(changed("/micro_batches", "4097").says(errc::plan, "micro_batches", "1 to 4096"));
  CHECK(changed("/notes/0", R"("\u001b[2J")").says(errc::plan, "notes[0]", "control characters"));
  CHECK(changed("/scheduler", R"("\u007f")").says(errc::plan, "scheduler", "control characters"));
  CHECK(error_of([] { read("{\"a\xFF\x1B"); }).text.find_first_of("\xFF\x1B") == std::string::npos);
  CHECK(error_of([] { read("{"); }).says(errc::plan, "not JSON"));
  CHECK(error_of([] { fl::load_plan("/no/such.json", g, peers); }).says(errc::plan, "/no/such.json"));
}
