// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/trainer/config.hpp>

#include <fusionllm/trainer/config_text.hpp>
#include <set>

#include "catch.hpp"
#include "unit/error_of.hpp"

namespace fl = fusionllm;
using fusionllm_test::caught;
using fusionllm_test::error_of;

namespace {

const fl::config_field& field(std::string_view key) {
  const auto* f = fl::detail::find_field(std::span<const fl::config_field>(fl::config_fields), key);
  REQUIRE(f);
  return *f;
}

caught set(std::string_view key, std::string_view value) {
  fl::run_config c;
  return error_of([&] { fl::set_field(field(key), c, value); });
}

}  // namespace

TEST_CASE("the defaults are a configuration") { CHECK_NOTHROW(fl::check(fl::run_config{})); }

TEST_CASE("every key comes once, has help and one member, and its default is in range") {
  std::set<std::string_view> keys;
  for (const auto& f : fl::config_fields) {
    INFO(f.key);
    CHECK(keys.insert(f.key).second);
    CHECK_FALSE(f.help.empty());
    CHECK((f.integer != nullptr) + (f.real != nullptr) + (f.text != nullptr) + (f.flag != nullptr) == 1);
    CHECK(f.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos);
  }
}

TEST_CASE("every value is read back to the same bits") {
  fl::run_config c;
  c.learning_rate = 0.1 + 0.2;
  c.min_learning_rate = 5e-324;
  c.epsilon = 1.0 / 3;
  c.seed = INT64_MAX;
  c.data = "a b'\"\n";
  c.resume = true;
  fl::run_config d;
  for (const auto& f : fl::config_fields) fl::set_field(f, d, fl::field_text(f, c));
  for (const auto& f : fl::config_fields) CHECK(fl::field_text(f, c) == fl::field_text(f, d));
  CHECK(d.learning_rate == c.learning_rate);
  CHECK(d.min_learning_rate == c.min_learning_rate);
}

TEST_CASE("values out of range name key, value and range") {
  CHECK(set("steps", "-1").says(fl::errc::config, "steps is -1", "expected 0 to"));
  CHECK(set("batch", "0").says(fl::errc::config, "batch is 0", "expected 1 to"));
  CHECK(set("batch", "1.5").says(fl::errc::config, "batch is '1.5'", "a whole number"));
  CHECK(set("batch", "").says(fl::errc::config, "a whole number"));
  CHECK(set("batch", "99999999999999999999").says(fl::errc::config, "a whole number"));
  CHECK(set("learning_rate", "fast").says(fl::errc::config, "learning_rate is 'fast'", "a number"));
  CHECK(set("learning_rate", "nan").says(fl::errc::config, "learning_rate is nan", "expected 0 to"));
  CHECK(set("learning_rate", "inf").says(fl::errc::config, "learning_rate is inf"));
  CHECK(set("learning_rate", "-0.1").says(fl::errc::config, "-0.1"));
  CHECK(set("epsilon", "0").says(fl::errc::config, "epsilon is 0", "above 0"));
  CHECK(set("beta1", "1").says(fl::errc::config, "beta1 is 1"));
  CHECK(set("step_timeout", "0").says(fl::errc::config, "step_timeout is 0"));
  CHECK(set("optimizer", "adam").says(fl::errc::config, "optimizer is 'adam'", "adamw|sgd", "did you mean 'adamw'?"));
  CHECK(set("optimizer", "").says(fl::errc::config, "optimizer is ''", "adamw|sgd"));
  CHECK(set("token_format", "").says(fl::errc::config, "token_format is ''"));
  CHECK(set("select", "").code == fl::errc::ok);  // the compressor's own
  CHECK(set("heartbeat", "1e-9").says(fl::errc::config, "heartbeat is 1e-09", "expected 0.001 to"));  // it would do nothing else
  CHECK(set("resume", "maybe").says(fl::errc::config, "resume is 'maybe'", "true or false"));
  CHECK(set("learning-rate", "0.1").code == fl::errc::ok);
}

TEST_CASE("keys that contradict each other") {
  auto checked = [](auto&& change) {
    fl::run_config c;
    change(c);
    return error_of([&] { fl::check(c); });
  };
  CHECK(checked([](auto& c) { c.micro_batches = 17; }).says(fl::errc::config, "micro_batches is 17", "16 (batch)"));
  CHECK(checked([](auto& c) { c.groups = 5; }).says(fl::errc::config, "groups is 5", "4 (micro_batches)"));
  CHECK(checked([](auto& c) { c.min_learning_rate = 1; }).says(fl::errc::config, "min_learning_rate is 1"));
  for (const double factor : {1e-9, 0.5, 1.0})
    CHECK(checked([&](auto& c) { c.spike_factor = factor; }).says(fl::errc::config, "spike_factor is", "0 (never) or above 1"));
  CHECK(checked([](auto& c) { c.spike_factor = 1.01; }).code == fl::errc::ok);
  CHECK(checked([](auto& c) { c.silence_timeout = 1; }).says(fl::errc::config, "silence_timeout", "heartbeat"));
  CHECK(checked([](auto& c) { c.resume = true; }).says(fl::errc::config, "resume", "run"));
  CHECK(checked([](auto& c) { c.name.assign(201, 'x'); }).says(fl::errc::config, "name has 201 bytes", "200"));
  CHECK(checked([](auto& c) { c.announce.assign(201, 'x'); }).says(fl::errc::config, "announce has 201 bytes"));
  CHECK(checked([](auto& c) { c.run_id.assign(201, 'x'); }).says(fl::errc::config, "run_id has 201 bytes"));
  CHECK(checked([](auto& c) { c.run_id = "\xc3\xbc"; }).says(fl::errc::config, "run_id", "\\xc3", "printable"));
  CHECK(checked([](auto& c) { c.token.assign(1025, 'x'); }).says(fl::errc::config, "token has 1025 bytes", "1024"));
  CHECK(checked([](auto& c) { c.name.assign(200, 'x'), c.run_id.assign(200, 'x'), c.token.assign(1024, 'x'); }).code == fl::errc::ok);
  CHECK(checked([](auto& c) { c.emulate = true; }).says(fl::errc::config, "emulate", "topology"));
}

TEST_CASE("peers agree on what decides the results, not on addresses, threads and secrets") {
  fl::run_config a, b;
  b.bind = "10.0.0.1:1", b.threads = 7, b.token = "secret", b.data = "/elsewhere", b.keep = 9;
  CHECK(fl::agreed_entries(a, 1) == fl::agreed_entries(b, 1));
  CHECK_FALSE(fl::agreed_entries(a, 1) == fl::agreed_entries(b, 2));
  b.learning_rate = 0.5;
  fl::hello x, y;
  x.name = "x", y.name = "y", x.config = fl::agreed_entries(a), y.config = fl::agreed_entries(b);
  const auto why = fl::difference(x, y);
  REQUIRE(why);
  CHECK(why->find("'learning_rate' is '0.5'") != std::string::npos);
  CHECK(why->find("'0.001'") != std::string::npos);
  CHECK(fl::encode(x).size() < fl::hello_cap / 8);
}

TEST_CASE("a resumed run may stop elsewhere, not train otherwise") {
  fl::run_config a, b;
  b.stop_after = 5, b.resume = true, b.checkpoint_interval = 3, b.schedule = "gpipe", b.peers = 3;
  CHECK(fl::digest_of(fl::lasting_entries(a)) == fl::digest_of(fl::lasting_entries(b)));
  CHECK(fl::digest_of(fl::agreed_entries(a)) != fl::digest_of(fl::agreed_entries(b)));
  b.seed = 2;
  CHECK(fl::digest_of(fl::lasting_entries(a)) != fl::digest_of(fl::lasting_entries(b)));
}

TEST_CASE("no secret is written") {
  fl::run_config c;
  c.token = "hush";
  CHECK(fl::to_json(c).find("hush") == std::string::npos);
  for (const auto& e : fl::agreed_entries(c)) CHECK(e.value != "hush");
}
