// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/safetensors_writer.hpp>

#include <fusionllm/trainer/safetensors.hpp>

#include <filesystem>
#include <limits>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/file_size_limit.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fl::u64;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

template <class T>
std::vector<T> read(const fl::safetensors_file& f, const std::string& name) {
  const auto* t = f.find(name);
  REQUIRE(t);
  std::vector<T> v(std::size_t(t->count));
  f.read(*t, std::span<T>(v));
  return v;
}

template <class T>
void save(const std::string& path, fl::stored_type type, const std::vector<T>& values) {
  fl::safetensors_writer w(path, type, {{"x", {values.size()}}});
  w.add(std::span<const T>(values));
  w.finish();
}

}  // namespace

TEST_CASE("what is written is sorted, aligned, padded, and reads back") {
  const temporary_folder folder;
  const std::string path = folder / "f.safetensors";
  const std::vector<float> matrix{1, 2, 3, 4, 5, 6};
  {
    fl::safetensors_writer w(path, fl::stored_type::f32, {{"b", {3, 2}}, {"a\"\n", {}}, {"z", {0, 7}}});
    REQUIRE(w.tensors()[0].name == "a\"\n");
    const float scalar = -1.5f;
    w.add(std::span(&scalar, 1));
    w.add_transposed(std::span(matrix), 2);
    w.add(std::span<const float>());
    CHECK_FALSE(std::filesystem::exists(path));
    w.finish();
    CHECK(w.bytes_written() == std::filesystem::file_size(path));
  }
  CHECK(folder.names() == std::vector<std::string>{"f.safetensors"});
  const std::string text = folder.read("f.safetensors");
  u64 length = 0;
  std::memcpy(&length, text.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(text.substr(8, 34) == R"({"__metadata__":{"format":"pt"},"a)");
  const fl::safetensors_file f(path);
  CHECK(read<float>(f, "a\"\n") == std::vector<float>{-1.5f});
  CHECK(read<float>(f, "b") == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(f.find("b")->shape == std::vector<u64>{3, 2});
  CHECK(f.find("z")->shape == std::vector<u64>{0, 7});
  CHECK(f.find("b")->begin % 4 == 0);
}

TEST_CASE("fp16 and bf16 round to nearest even; nothing finite becomes infinite") {
  const temporary_folder folder;
  const std::string path = folder / "f";
  const float inf = std::numeric_limits<float>::infinity();
  save<float>(path, fl::stored_type::bf16, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -inf});
  CHECK(read<float>(fl::safetensors_file(path), "x") == std::vector<float>{1, 1 + 0x1p-6f, -inf});
  save<double>(path, fl::stored_type::f16, {1 + 0x1p-11, 65504, 0x1p-24, double(inf)});
  CHECK(read<double>(fl::safetensors_file(path), "x") == std::vector<double>{1, 65504, 0x1p-24, double(inf)});
  save<double>(path, fl::stored_type::f64, {0.1, 1e300});
  CHECK(read<double>(fl::safetensors_file(path), "x") == std::vector<double>{0.1, 1e300});
  for (auto type : {fl::stored_type::f16, fl::stored_type::bf16, fl::stored_type::f32}) {
    const auto e = error_of([&] { save<double>(path, type, {0, 3.4028236e38}); });
    CHECK(e.says(fl::errc::numeric, "element 1 of 'x'", fl::info_of(type).name));
  }
  CHECK(folder.names() == std::vector<std::string>{"f"});
  CHECK(read<double>(fl::safetensors_file(path), "x") == std::vector<double>{0.1, 1e300});
}

TEST_CASE("large and odd matrices are turned") {
  const temporary_folder folder;
  const std::string path = folder / "f";
  for (std::size_t rows : {1u, 3u, 700u})
    for (std::size_t columns : {1u, 65u, 401u}) {
      std::vector<float> v(rows * columns);
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = float(i);
      fl::safetensors_writer w(path, fl::stored_type::f32, {{"x", {columns, rows}}});
      w.add_transposed(std::span<const float>(v), rows);
      w.finish();
      const fl::safetensors_file f(path);
      const auto raw = read<float>(f, "x");
      std::vector<float> back(v.size());
      f.read_transposed(*f.find("x"), rows, std::span(back));
      CHECK((back == v && raw[raw.size() / 2] == v[raw.size() / 2 % rows * columns + raw.size() / 2 / rows]));
    }
}

TEST_CASE("a writer that does not end well leaves what was there") {
  const temporary_folder folder;
  const std::string path = folder.write("f", "before");
  const std::vector<float> two{1, 2};
  {
    fl::safetensors_writer w(path, fl::stored_type::f32, {{"a", {2}}, {"b", {2}}});
    w.add(std::span(two));
    CHECK(error_of([&] { w.finish(); }).says(fl::errc::internal, "1 of 2"));
    CHECK(error_of([&] { w.add(std::span(two).first(1)); }).says(fl::errc::internal, "'b'"));
  }
  CHECK(folder.read("f") == "before");
  CHECK(folder.names() == std::vector<std::string>{"f"});
  CHECK(error_of([&] { fl::safetensors_writer(path, fl::stored_type::f32, {{"a", {}}, {"a", {}}}); }).says(fl::errc::internal, "'a'"));
  CHECK(error_of([&] { fl::safetensors_writer(folder / "no/f", fl::stored_type::f32, {}); }).says(fl::errc::checkpoint, "cannot create"));
  const std::vector<float> many(1 << 16);
  const auto e = error_of([&] {
    const fusionllm_test::file_size_limit limit(4096);
    fl::safetensors_writer w(path, fl::stored_type::f32, {{"a", {many.size()}}});
    w.add(std::span(many));
  });
  CHECK(e.says(fl::errc::resource, "free some space"));
  CHECK(folder.read("f") == "before");
}
