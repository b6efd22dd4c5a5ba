// SPDX-License-Identifier: Apache-2.0
// Case C23: which sets of names and shapes fit a GPT-2 and a ResNet, and what is said of those that do not.
#include <fusionllm/models/names_match.hpp>

#include <fusionllm/models/names_gpt2.hpp>
#include <fusionllm/models/names_resnet.hpp>

#include <map>

#include "catch.hpp"

namespace fl = fusionllm;
using fl::u64;

namespace {

using shapes = std::map<std::string, std::vector<u64>>;

// Our parameters of one block and what is around it; width 4, vocabulary 10.
std::vector<fl::parameter_info> parameters() {
  std::vector<fl::parameter_info> all;
  const auto add = [&](const char* name, std::initializer_list<fl::i64> dims) {
    fl::parameter_info p;
    p.path = name;
    for (fl::i64 d : dims) p.dims.d[std::size_t(p.dims.rank++)] = d;
    all.push_back(p);
  };
  add("wte.weight", {10, 4});
  add("wpe.weight", {6, 4});
  add("h.0.attn.c_attn.weight", {12, 4});
  add("h.0.attn.c_attn.bias", {12});
  add("h.0.attn.c_proj.weight", {4, 4});
  add("ln_f.weight", {4});
  return all;
}
shapes original() {
  return {{"wte.weight", {10, 4}},           {"wpe.weight", {6, 4}},   {"h.0.attn.c_attn.weight", {4, 12}},
          {"h.0.attn.c_attn.bias", {12}},    {"ln_f.weight", {4}},     {"h.0.attn.c_proj.weight", {4, 4}}};
}
shapes prefixed(const shapes& s, const std::string& prefix = "transformer.") {
  shapes r;
  for (const auto& [name, shape] : s) r[prefix + name] = shape;
  return r;
}

struct matched {
  std::vector<fl::parameter_info> params = parameters();
  shapes names;
  std::vector<fl::weight_in_file> file;
  fl::weight_match m;
  matched(shapes s, const fl::weight_names& table = fl::gpt2_names) : names(std::move(s)) {
    for (const auto& [name, shape] : names) file.push_back({name, shape});
    m = fl::match_weights(table, params, file);
  }
  bool whole() const { return m.missing.empty() && m.unused.empty() && m.wrong.empty(); }
  std::string source(std::size_t i) const {
    const int t = m.sources[i].tensor;
    return t < 0 ? "" : std::string(file[std::size_t(t)].name);
  }
};

}  // namespace

TEST_CASE("names with and without the prefix") {
  for (const auto& s : {original(), prefixed(original())}) {
    const matched m(s);
    CHECK(m.whole());
    CHECK(m.m.notes.empty());
    CHECK(m.m.sources[2].transposed);
    CHECK(m.m.sources[4].transposed);
    CHECK_FALSE(m.m.sources[3].transposed);
    CHECK_FALSE(m.m.sources[0].transposed);
  }
  CHECK(matched(prefixed(original())).source(2) == "transformer.h.0.attn.c_attn.weight");
}

TEST_CASE("the head is the embedding") {
  auto s = prefixed(original());
  s["lm_head.weight"] = {10, 4};
  const matched both(s);
  CHECK(both.whole());
  CHECK(both.source(0) == "transformer.wte.weight");
  REQUIRE(both.m.sources[0].equals.size() == 1);
  CHECK(both.file[std::size_t(both.m.sources[0].equals[0])].name == "lm_head.weight");
  s.erase("transformer.wte.weight");
  const matched head(s);
  CHECK(head.whole());
  CHECK(head.source(0) == "lm_head.weight");
  s.erase("lm_head.weight");
  CHECK(matched(s).m.missing == std::vector<std::string>{"transformer.wte.weight"});
}

TEST_CASE("buffers are ignored, other names are listed") {
  auto s = original();
  s["h.0.attn.bias"] = {1, 1, 6, 6};
  s["h.0.attn.masked_bias"] = {};
  CHECK(matched(s).whole());
  CHECK(matched(prefixed(s)).whole());
  s["h.1.ln_1.weight"] = {4};
  s["score.weight"] = {2, 4};
  s.erase("ln_f.weight");
  s.erase("wpe.weight");
  const matched m(s);
  CHECK(m.m.unused == std::vector<std::string>{"h.1.ln_1.weight", "score.weight"});
  CHECK(m.m.missing == std::vector<std::string>{"transformer.wpe.weight", "transformer.ln_f.weight"});
}

TEST_CASE("matrices that lie as ours do are seen to, square ones with them") {
  auto s = original();
  s["h.0.attn.c_attn.weight"] = {12, 4};
  const matched m(s);
  CHECK(m.whole());
  CHECK_FALSE(m.m.sources[2].transposed);
  CHECK_FALSE(m.m.sources[4].transposed);
  REQUIRE(m.m.notes.size() == 1);
  CHECK(m.m.notes[0].find("(out, in)") != std::string::npos);
}

TEST_CASE("a padded vocabulary is cut, a short one is an error with key and both shapes") {
  auto s = original();
  s["wte.weight"] = {16, 4};
  s["lm_head.weight"] = {16, 4};
  const matched padded(s);
  CHECK(padded.whole());
  REQUIRE(padded.m.notes.size() == 1);
  CHECK(padded.m.notes[0] == "wte.weight has 16 rows: the first 10 are taken");
  s["wte.weight"] = {9, 4};
  s["h.0.attn.c_attn.bias"] = {13};
  s["h.0.attn.c_attn.weight"] = {4, 13};
  s["ln_f.weight"] = {4, 1};
  const auto wrong = matched(s).m.wrong;
  CHECK(wrong.size() == 4);
  const auto says = [&](const std::string& text) {
    for (const auto& w : wrong)
      if (w == text) return true;
    return false;
  };
  CHECK(says("wte.weight is (9, 4), the model's wte.weight takes (10, 4)"));
  CHECK(says("h.0.attn.c_attn.bias is (13), the model's h.0.attn.c_attn.bias takes (12)"));
  CHECK(says("h.0.attn.c_attn.weight is (4, 13), the model's h.0.attn.c_attn.weight takes (4, 12), the transpose of its own shape"));
  CHECK(says("ln_f.weight is (4, 1), the model's ln_f.weight takes (4)"));
}

TEST_CASE("a model without a table has its own names, untransposed and exact") {
  auto s = original();
  const matched m(s, fl::same_names);
  CHECK(m.m.wrong.size() == 1);
  s["h.0.attn.c_attn.weight"] = {12, 4};
  CHECK(matched(s, fl::same_names).whole());
  CHECK(matched(prefixed(s), fl::same_names).m.missing.size() == 6);
}

TEST_CASE("what batch norm counts is ignored") {
  std::vector<fl::parameter_info> params(3);
  params[0].path = "bn1.weight", params[1].path = "bn1.running_mean", params[2].path = "layer1.0.downsample.0.weight";
  params[0].dims = params[1].dims = {1, {8}};
  params[2].dims = {4, {16, 8, 1, 1}};
  const std::vector<u64> eight{8}, kernel{16, 8, 1, 1}, scalar;
  const std::vector<fl::weight_in_file> file{{"bn1.num_batches_tracked", scalar},
                                             {"bn1.running_mean", eight},
                                             {"bn1.weight", eight},
                                             {"layer1.0.bn1.num_batches_tracked", scalar},
                                             {"layer1.0.downsample.0.weight", kernel}};
  const auto m = fl::match_weights(fl::resnet_names, params, file);
  CHECK((m.missing.empty() && m.unused.empty() && m.wrong.empty()));
  CHECK(m.sources[1].tensor == 1);
}
