// SPDX-License-Identifier: Apache-2.0
// Checkpoints: whole or absent, every damage found, nothing allocated from a damaged number.
#include <fusionllm/trainer/checkpoint.hpp>

#include <sys/wait.h>

#include <csignal>

#include "catch.hpp"
#include "unit/error_of.hpp"
#include "unit/file_size_limit.hpp"
#include "unit/temporary_folder.hpp"

namespace fl = fusionllm;
using fusionllm_test::error_of;
using fusionllm_test::temporary_folder;

namespace {

const fl::checkpoint_info info{11, 7};
const fl::extents two_by_three{2, {2, 3}}, empty_tensor{2, {0, 3}}, scalar{0, {}};

std::vector<float> ramp(float from) { return {from, from + 1, from + 2, from + 3, from + 4, from + 5}; }

void save(const std::string& path, float from = 0, const fl::checkpoint_info& what = info) {
  const auto w = ramp(from), m = ramp(from + 10);
  const double one = from;
  fl::checkpoint_writer c(path, what);
  c.add("w", two_by_three, std::span(w));
  c.add("w/m", two_by_three, std::span(m));
  c.add("nothing", empty_tensor, std::span<const float>());
  c.add("one", scalar, std::span(&one, 1));
  c.add_text("config", "seed=1");
  c.finish();
}

std::vector<float> load(const fl::checkpoint_reader& r, std::string_view name = "w") {
  std::vector<float> x(6);
  r.read(name, fl::dtype::f32, two_by_three, std::as_writable_bytes(std::span(x)));
  return x;
}

/// Opening and reading everything, as a resuming run does.
fusionllm_test::caught read_all(const std::string& path) {
  return error_of([&] {
    fl::checkpoint_reader r(path);
    r.verify();
    r.expect_model(info.fingerprint);
  });
}

}  // namespace

TEST_CASE("what was saved is read back") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  const fl::checkpoint_reader r(folder / "a.ckpt");
  CHECK(r.info() == info);
  CHECK(r.records().size() == 5);
  CHECK(load(r) == ramp(0));
  CHECK(load(r, "w/m") == ramp(10));
  CHECK(r.read_text("config") == "seed=1");
  CHECK_NOTHROW(r.verify());
  CHECK_FALSE(r.find("v"));
  CHECK(folder.names() == std::vector<std::string>{"a.ckpt"});
}

TEST_CASE("another name, type, shape or model is named") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  const fl::checkpoint_reader r(folder / "a.ckpt");
  std::vector<float> x(6);
  const auto bytes = std::as_writable_bytes(std::span(x));
  CHECK(error_of([&] { r.read("v", fl::dtype::f32, two_by_three, bytes); }).says(fl::errc::checkpoint, "no record 'v'"));
  CHECK(error_of([&] { r.read("w", fl::dtype::int32, two_by_three, bytes); })
            .says(fl::errc::checkpoint, "'w'", "f32 of 24 bytes (2, 3)", "expected int32"));
  CHECK(error_of([&] { r.read("w", fl::dtype::f32, {2, {3, 2}}, bytes); }).says(fl::errc::checkpoint, "(3, 2)"));
  CHECK(error_of([&] { r.expect_model(12); }).says(fl::errc::checkpoint, "fingerprint 11", "is 12"));
}

TEST_CASE("every cut is found") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  const std::string whole = folder.read("a.ckpt");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO(n);
    const auto e = read_all(folder.write("cut.ckpt", whole.substr(0, n)));
    REQUIRE(e.says(fl::errc::checkpoint, "cut.ckpt"));
  }
  CHECK(read_all(folder.write("long.ckpt", whole + "x")).code == fl::errc::checkpoint);
  CHECK(read_all(folder.write("twice.ckpt", whole + whole)).code == fl::errc::checkpoint);
}

TEST_CASE("every flipped bit is found, but for the padding") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  std::string bytes = folder.read("a.ckpt");
  std::size_t unseen = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; bit += 3) {
      bytes[i] = char(bytes[i] ^ (1 << bit));
      const auto e = read_all(folder.write("flip.ckpt", bytes));
      bytes[i] = char(bytes[i] ^ (1 << bit));
      if (e.code == fl::errc::ok) ++unseen;
      else REQUIRE(e.code == fl::errc::checkpoint);
    }
  const std::size_t padding = 7 + 5 + 1 + 5 + 2 + 2;  // of "w", "w/m", "nothing", "one", "config", its text
  CHECK(unseen == padding * 3);
}

TEST_CASE("records that are exchanged, missing or repeated are found") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  const std::string whole = folder.read("a.ckpt");
  const std::size_t header = 64, record = 64 + 8 + 24;  // "w" and "w/m" take the same
  const std::string head = whole.substr(0, header), w = whole.substr(header, record), m = whole.substr(header + record, record);
  const std::string rest = whole.substr(header + 2 * record);
  CHECK(read_all(folder.write("exchanged.ckpt", head + m + w + rest)).code == fl::errc::checkpoint);
  CHECK(read_all(folder.write("missing.ckpt", head + w + rest)).code == fl::errc::checkpoint);
  CHECK(read_all(folder.write("repeated.ckpt", head + w + w + rest)).says(fl::errc::checkpoint, "'w' comes twice"));
}

TEST_CASE("hostile sizes with right checksums are refused before anything is allocated") {
  temporary_folder folder;
  save(folder / "a.ckpt");
  const std::string whole = folder.read("a.ckpt");
  auto with = [&](auto&& change, std::string_view name = "w") {
    fl::detail::record_header h;
    std::memcpy(h.data(), whole.data() + 64, 64);
    change(h);
    h.seal(name);
    std::string bytes = whole;
    bytes.replace(64, 64, h.data(), 64);
    return read_all(folder.write("hostile.ckpt", bytes));
  };
  for (fl::u64 size : {fl::u64(1) << 63, ~fl::u64(0), fl::u64(1) << 40, fl::u64(whole.size())})
    CHECK(with([&](auto& h) { h.put(40, size); }).says(fl::errc::checkpoint, "record 'w' of", "left"));
  CHECK(with([](auto& h) { h.put(8, fl::i64(1) << 62); }).says(fl::errc::checkpoint, "its shape"));
  CHECK(with([](auto& h) { h.put(8, fl::i64(-2)); }).says(fl::errc::checkpoint, "extent -2"));
  CHECK(with([](auto& h) { h.put(8, fl::i64(0)); }).says(fl::errc::checkpoint, "its shape"));
  CHECK(with([](auto& h) { h.put(6, fl::u8(200)); }).says(fl::errc::checkpoint, "element type 200"));
  CHECK(with([](auto& h) { h.put(7, fl::u8(5)); }).says(fl::errc::checkpoint, "rank 5"));
  CHECK(with([](auto& h) { h.put(4, fl::u16(65535)); }).says(fl::errc::checkpoint, "a name of 65535"));
  CHECK(with([](auto& h) { h.put(4, fl::u16(0)); }).says(fl::errc::checkpoint, "a name of 0"));
}

TEST_CASE("other files are not checkpoints") {
  temporary_folder folder;
  CHECK(read_all(folder / "absent.ckpt").says(fl::errc::checkpoint, "absent.ckpt", "No such file"));
  CHECK(read_all(folder.path()).says(fl::errc::checkpoint, "not a regular file"));
  CHECK(read_all(folder.write("text.ckpt", std::string(1000, 'x'))).says(fl::errc::checkpoint, "is not a checkpoint"));
  save(folder / "a.ckpt");
  std::string later = folder.read("a.ckpt");
  later[8] = 2;
  CHECK(read_all(folder.write("later.ckpt", later)).says(fl::errc::checkpoint, "version 2", "reads 1"));
}

TEST_CASE("an interrupted writer leaves the old file, and its rest is removed") {
  temporary_folder folder;
  const fl::checkpoint_folder c(folder / "checkpoints");
  c.prepare();
  save(c.file_of(7));
  const std::vector<std::string> whole{"step-0000000007.ckpt"};
  for (int die_after = 0; die_after < 4; ++die_after) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto w = ramp(5);
      fl::checkpoint_writer writer(c.file_of(8), info);
      for (int i = 0; i < die_after; ++i) writer.add("w" + std::to_string(i), two_by_three, std::span(w));
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(folder.names("checkpoints").size() == 2);  // what the writer left
    CHECK(c.find_newest(info.fingerprint).newest->info().step == 7);
    c.prepare();
    CHECK(folder.names("checkpoints") == whole);
  }
  CHECK(c.steps() == std::vector<fl::u64>{7});
}

TEST_CASE("a full disk is a resource error, and the old file stays") {
  temporary_folder folder;
  const fl::checkpoint_folder c(folder.path());
  save(c.file_of(7));
  for (rlim_t limit : {rlim_t(0), rlim_t(10), rlim_t(100), rlim_t(400)}) {
    const auto e = error_of([&] {
      const fusionllm_test::file_size_limit full(limit);
      save(c.file_of(8));
    });
    INFO(e.text);
    CHECK(e.says(fl::errc::resource, c.file_of(8), "bytes"));
    CHECK(folder.names() == std::vector<std::string>{"step-0000000007.ckpt"});
  }
  CHECK(c.find_newest(info.fingerprint).newest->info().step == 7);
}

TEST_CASE("a folder that cannot be written says so") {
  CHECK(error_of([] { save("/nowhere/a.ckpt"); }).says(fl::errc::checkpoint, "/nowhere/a.ckpt", "check the folder"));
  CHECK(error_of([] { fl::checkpoint_folder("/nowhere/at/all").prepare(); }).says(fl::errc::checkpoint, "check its parent"));
}

TEST_CASE("the newest whole checkpoint is found, damaged ones are reported, N are kept") {
  temporary_folder folder;
  const fl::checkpoint_folder c(folder.path());
  CHECK_FALSE(c.find_newest(11).newest);
  for (fl::u64 step : {1u, 2u, 10u, 20u}) save(c.file_of(step), float(step), {11, step});
  folder.write("step-1.ckpt", "x");
  folder.write("step-x.ckpt", "x");
  folder.write("notes.txt", "x");
  CHECK(c.steps() == std::vector<fl::u64>{1, 2, 10, 20});
  std::filesystem::resize_file(c.file_of(20), 300);
  auto s = c.find_newest(11);
  REQUIRE(s.newest);
  CHECK(s.newest->info().step == 10);
  CHECK(load(*s.newest) == ramp(10));
  REQUIRE(s.damaged.size() == 1);
  CHECK(s.damaged[0].find("step-0000000020.ckpt") != std::string::npos);
  CHECK(error_of([&] { c.find_newest(12); }).says(fl::errc::checkpoint, "fingerprint"));
  // A run that went on from step 10: the damaged 20 does not push out what is whole.
  save(c.file_of(15), 15, {11, 15});
  c.keep_newest(1, 15);
  CHECK(c.steps() == std::vector<fl::u64>{15, 20});
  save(c.file_of(30), 30, {11, 30});
  c.keep_newest(2, 30);
  CHECK(c.steps() == std::vector<fl::u64>{20, 30});
  c.keep_newest(0, 30);
  CHECK(c.steps() == std::vector<fl::u64>{30});
}

TEST_CASE("a writer's mistakes are defects, not files") {
  temporary_folder folder;
  fl::checkpoint_writer w(folder / "a.ckpt", info);
  const auto x = ramp(0);
  w.add("x", two_by_three, std::span(x));
  CHECK(error_of([&] { w.add("x", two_by_three, std::span(x)); }).code == fl::errc::internal);
  CHECK(error_of([&] { w.add("", two_by_three, std::span(x)); }).code == fl::errc::internal);
  CHECK(error_of([&] { w.add("y", {1, {5}}, std::span(x)); }).code == fl::errc::internal);
}
