// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/safetensors_files.hpp>

#include <fusionllm/trainer/safetensors_writer.hpp>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

void save(const std::string& path, const std::vector<std::string>& names, float value) {
  std::vector<fl::safetensors_writer::tensor> tensors;
  for (const auto& n : names) tensors.push_back({n, {1}});
  fl::safetensors_writer w(path, fl::stored_type::f32, tensors);
  for (std::size_t i = 0; i < names.size(); ++i) w.add(std::span<const float>(&value, 1));
  w.finish();
}
float value_of(const fl::safetensors_files& f, const std::string& name) {
  const auto e = f.find(name);
  REQUIRE(e.tensor);
  float v = 0;
  e.file->read(*e.tensor, std::span(&v, 1));
  return v;
}

}  // namespace

TEST_CASE("a file, or a folder with one") {
  const temporary_folder folder;
  save(folder / "model.safetensors", {"b", "a"}, 3);
  for (const auto& path : {folder / "model.safetensors", folder.path()}) {
    const fl::safetensors_files f(path);
    CHECK(f.tensors().size() == 2);
    CHECK(value_of(f, "b") == 3);
    CHECK(f.find("c").tensor == nullptr);
  }
}

TEST_CASE("an index names the shard of each tensor") {
  const temporary_folder folder;
  save(folder / "one.safetensors", {"b", "x"}, 1);
  save(folder / "two.safetensors", {"a", "x", "unlisted"}, 2);
  folder.write("model.safetensors.index.json",
               R"({"metadata":{"total_size":12},"weight_map":{"x":"two.safetensors","b":"one.safetensors","a":"two.safetensors"}})");
  for (const auto& path : {folder / "model.safetensors.index.json", folder.path()}) {
    const fl::safetensors_files f(path);
    CHECK(f.file_count() == 2);
    CHECK(f.tensors().size() == 3);
    CHECK(value_of(f, "x") == 2);
    CHECK(value_of(f, "b") == 1);
    CHECK(f.find("unlisted").tensor == nullptr);
  }
}

TEST_CASE("a bad index says what is wrong") {
  const temporary_folder folder;
  save(folder / "one.safetensors", {"b"}, 1);
  const auto bad = [&](const std::string& text, const auto&... parts) {
    const auto path = folder.write("i.json", text);
    const auto e = error_of([&] { fl::safetensors_files{path}; });
    INFO(e.text);
    CHECK(e.says(fl::errc::checkpoint, parts...));
  };
  bad("", "is not JSON");
  bad("[]", "no object weight_map");
  bad(R"({"weight_map":[]})", "no object weight_map");
  bad(R"({"weight_map":{"a":1}})", "'a' is in ''");
  bad(R"({"weight_map":{"a":"../one.safetensors"}})", "'a' is in '../one.safetensors'", "beside the index");
  bad(R"({"weight_map":{"a":"/etc/passwd"}})", "beside the index");
  bad(R"({"weight_map":{"a":"one.safetensors"}})", "'a' is in 'one.safetensors', which has no such tensor");
  bad(R"({"weight_map":{"a":"three.safetensors"}})", "three.safetensors", "No such file");
  bad(R"({"weight_map":{"b":"one.safetensors","b":"one.safetensors"}})", "comes twice");
}

TEST_CASE("a folder without weights says so, and names a pickle") {
  const temporary_folder folder;
  CHECK(error_of([&] { fl::safetensors_files{folder.path()}; }).says(fl::errc::checkpoint, "has neither"));
  folder.write("pytorch_model.bin", "PK\3\4");
  CHECK(error_of([&] { fl::safetensors_files{folder.path()}; }).says(fl::errc::checkpoint, "pytorch_model.bin", "pickle"));
}
