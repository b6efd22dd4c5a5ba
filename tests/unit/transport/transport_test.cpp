// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/transport.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;

TEST_CASE("options without sense are errors of the configuration") {
  auto rejects = [](auto change) {
    fl::transport_options o = fusionllm_test::named("a");
    change(o);
    try {
      fl::checked(o);
    } catch (const fl::error& e) {
      return e.code() == fl::errc::config;
    }
    return false;
  };
  CHECK(rejects([](fl::transport_options& o) { o.frames.frame_cap = 100; }));
  CHECK(rejects([](fl::transport_options& o) { o.frames.frame_cap = fl::u64(1) << 31; }));
  CHECK(rejects([](fl::transport_options& o) { o.half_open = 0; }));
  CHECK(rejects([](fl::transport_options& o) { o.self.config.push_back({"k", std::string(100'000, 'x')}); }));
  CHECK_FALSE(rejects([](fl::transport_options&) {}));
}

TEST_CASE("the size of a message is that of all its parts") {
  const std::vector<std::byte> a(3), b(4);
  fl::outgoing m;
  m.parts = {a, {}, b};
  CHECK(m.size() == 7);
}
