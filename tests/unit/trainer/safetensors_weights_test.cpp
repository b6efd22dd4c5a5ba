// SPDX-License-Identifier: Apache-2.0
// Case C23 with values: every legal file of a GPT-2 gives the same loss and weights, every other changes nothing.
#include <fusionllm/trainer/safetensors_weights.hpp>

#include <fusionllm/device/reference.hpp>
#include <fusionllm/models/names_gpt2.hpp>
#include <fusionllm/schedule/schedulers.hpp>
#include <fusionllm/trainer/basic_trainer.hpp>

#include "catch.hpp"
#include "models.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fl::u64;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

struct named_gpt : fusionllm_test::gpt2<2, 16, 2, 37, 8> {
  static constexpr fl::weight_names file_names = fl::gpt2_names;
};

const fl::model_binding& binding() {
  return fl::bind_model<named_gpt, fl::devices<fl::reference<float>, fl::reference<double>>, fl::schedulers<fl::best_single>,
                        fl::built_in_compressors>();
}

struct gpt {
  fl::basic_trainer t;
  explicit gpt(u64 seed, const std::string& device = "reference")
      : t(binding(), {.device = device, .batch = 2, .time = 8, .seed = seed}) {
    // Biases and norms start equal everywhere: other values show whether each came to its place.
    for (const auto& p : t.graph().params) {
      const auto x = t.parameter(p.path.view());
      for (fl::i64 i = 0; i < x.count(); ++i) {
        const float y = float(fl::random_word({seed, u64(p.path.length), 0, 1}, u64(i))) * 0x1p-34f;
        if (x.type == fl::dtype::f64) x.as<double>()[i] += double(y);
        else x.as<float>()[i] += y;
      }
    }
  }
  double loss() {
    std::vector<std::int32_t> tokens, targets;
    for (int i = 0; i < 16; ++i) tokens.push_back(i * 7 % 37), targets.push_back(i * 11 % 37);
    return t.evaluate({{"tokens", std::span(tokens), {2, 8}}, {"targets", std::span(targets), {2, 8}}});
  }
};

// A file as a map of names, changed and written again.
struct content {
  std::map<std::string, std::pair<std::vector<u64>, std::vector<float>>> tensors;
  explicit content(const std::string& path) {
    const fl::safetensors_file f(path);
    for (const auto& t : f.tensors()) {
      std::vector<float> v(std::size_t(t.count));
      f.read(t, std::span(v));
      tensors[t.name] = {t.shape, v};
    }
  }
  void rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    REQUIRE(node);
    node.key() = to;
    tensors.insert(std::move(node));
  }
  void strip(const std::string& prefix) {
    auto all = std::move(tensors);
    tensors.clear();
    for (auto& [name, t] : all) tensors[name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name] = t;
  }
  void turn(const std::string& name) {
    auto& [shape, v] = tensors.at(name);
    std::vector<float> turned(v.size());
    for (std::size_t r = 0; r < shape[0]; ++r)
      for (std::size_t c = 0; c < shape[1]; ++c) turned[c * shape[0] + r] = v[r * shape[1] + c];
    v = turned;
    std::swap(shape[0], shape[1]);
  }
  std::string write(const std::string& path) const {
    std::vector<fl::safetensors_writer::tensor> list;
    for (const auto& [name, t] : tensors) list.push_back({name, t.first});
    fl::safetensors_writer w(path, fl::stored_type::f32, list);
    for (const auto& t : w.tensors()) w.add(std::span<const float>(tensors.at(t.name).second));
    w.finish();
    return path;
  }
};

}  // namespace

TEST_CASE("weights go out and come in with the same bits, in fp32 and fp64") {
  const temporary_folder folder;
  for (const char* device : {"reference", "reference_f64"}) {
    gpt a(1, device), b(2, device);
    REQUIRE(a.loss() != b.loss());
    fl::save_weights(a.t, folder / "w", a.t.real_type() == fl::dtype::f64 ? fl::stored_type::f64 : fl::stored_type::f32);
    CHECK(fl::load_weights(b.t, folder / "w").empty());
    CHECK(a.loss() == b.loss());
    for (const auto& p : a.t.graph().params) {
      const auto x = a.t.parameter(p.path.view()), y = b.t.parameter(p.path.view());
      if (std::memcmp(x.data, y.data, std::size_t(x.count()) * fl::size_of(x.type)) != 0) FAIL(p.path.view());
    }
  }
  const fl::safetensors_file f(folder / "w");
  CHECK(f.find("transformer.h.1.mlp.c_fc.weight")->shape == std::vector<u64>{16, 64});
  CHECK(f.find("transformer.h.1.mlp.c_proj.weight")->shape == std::vector<u64>{64, 16});
  CHECK(f.find("lm_head.weight") == nullptr);
}

TEST_CASE("every legal set of names loads to the same loss") {
  const temporary_folder folder;
  gpt a(1);
  fl::save_weights(a.t, folder / "w");
  const content saved(folder / "w");
  const auto loads = [&](content c, std::size_t notes = 0) {
    gpt b(2);
    CHECK(fl::load_weights(b.t, c.write(folder / "changed")).size() == notes);
    CHECK(a.loss() == b.loss());
  };
  loads(saved);
  {
    content c = saved;
    c.strip("transformer.");
    loads(c);
  }
  {
    content c = saved;
    c.rename("transformer.wte.weight", "lm_head.weight");
    loads(c);
  }
  {
    content c = saved;
    c.tensors["lm_head.weight"] = c.tensors["transformer.wte.weight"];
    c.tensors["transformer.h.0.attn.bias"] = {{1, 1, 8, 8}, std::vector<float>(64)};
    c.tensors["h.1.attn.masked_bias"] = {{}, {-1e4f}};
    loads(c);
    auto& [shape, v] = c.tensors["lm_head.weight"];  // the padded one may also be the other
    shape[0] = 64;
    v.resize(64 * 16, 5.f);
    loads(c);
    c.tensors["transformer.wte.weight"] = c.tensors["lm_head.weight"];
    c.tensors.erase("lm_head.weight");
    loads(c, 1);
  }
  {
    content c = saved;
    for (const char* name : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"})
      for (const char* layer : {"0", "1"}) c.turn(std::string("transformer.h.") + layer + "." + name + ".weight");
    loads(c, 1);
  }
}

TEST_CASE("what does not fit is listed and changes nothing") {
  const temporary_folder folder;
  gpt a(1);
  fl::save_weights(a.t, folder / "w");
  const content saved(folder / "w");
  gpt b(2);
  const double before = b.loss();
  const auto refused = [&](const content& c, fl::errc code, const auto&... parts) {
    const auto path = c.write(folder / "changed");
    const auto e = error_of([&] { fl::load_weights(b.t, path); });
    INFO(e.text);
    CHECK(e.says(code, parts...));
    CHECK(b.loss() == before);
  };
  content c = saved;
  c.rename("transformer.h.1.ln_1.weight", "transformer.h.2.ln_1.weight");
  c.tensors.erase("transformer.ln_f.bias");
  refused(c, fl::errc::model, "2 missing: transformer.h.1.ln_1.weight, transformer.ln_f.bias", "1 of no parameter: transformer.h.2.ln_1.weight");
  {
    gpt part(2);
    const auto notes = fl::load_weights(part.t, c.write(folder / "changed"), fl::weights_must::fit_in_part);
    REQUIRE(notes.size() == 2);
    CHECK(notes[0] == "2 missing, which start anew: transformer.h.1.ln_1.weight, transformer.ln_f.bias");
    CHECK(notes[1] == "1 not used: transformer.h.2.ln_1.weight");
    CHECK(std::memcmp(part.t.parameter("ln_f.weight").data, a.t.parameter("ln_f.weight").data, 64) == 0);
    CHECK(std::memcmp(part.t.parameter("ln_f.bias").data, b.t.parameter("ln_f.bias").data, 64) == 0);
  }
  c = saved;
  c.tensors["transformer.wpe.weight"] = {{7, 16}, std::vector<float>(7 * 16)};
  refused(c, fl::errc::model, "transformer.wpe.weight is (7, 16)", "wpe.weight takes (8, 16)");
  c = saved;
  c.tensors["lm_head.weight"] = c.tensors["transformer.wte.weight"];
  c.tensors["lm_head.weight"].second[5] += 1;
  refused(c, fl::errc::model, "'transformer.wte.weight' and 'lm_head.weight'", "differ", "wte.weight");
  c = saved;
  c.strip("transformer.h");
  refused(c, fl::errc::model, "24 missing", "24 of no parameter");
}

TEST_CASE("a value that cannot be held is found before anything changes") {
  const temporary_folder folder;
  gpt a(1, "reference_f64"), b(2);
  const double before = b.loss();
  a.t.parameter("wte.weight").as<double>()[3] = 1e300;
  fl::save_weights(a.t, folder / "w", fl::stored_type::f64);
  const auto e = error_of([&] { fl::load_weights(b.t, folder / "w"); });
  CHECK(e.says(fl::errc::checkpoint, "element 3 of tensor 'transformer.wte.weight'"));
  CHECK(b.loss() == before);
  std::string text = folder.read("w");
  text.replace(text.find("\"F64\""), 5, "\"C64\"");
  CHECK(error_of([&] { fl::load_weights(a.t, folder.write("c64", text)); }).says(fl::errc::checkpoint, "C64", "not supported"));
}
