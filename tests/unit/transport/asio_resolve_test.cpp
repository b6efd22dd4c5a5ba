// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/asio_resolve.hpp>

#include "catch.hpp"
#include "sockets.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::named;
using fusionllm_test::recorder;

namespace {
std::string cannot_listen(const std::string& text, bool insecure = false) {
  fl::asio_reactor loop;
  recorder r(loop);
  auto o = named("a");
  o.insecure_network = insecure;
  fl::asio_tcp tcp(loop, o);
  const fl::nanoseconds start = loop.now();
  try {
    return "listens at " + fl::to_string(tcp.listen(fl::parse_address(text), r));
  } catch (const fl::error& e) {
    CHECK(e.code() == fl::errc::network);
    CHECK(loop.now() - start < 5 * fl::second);
    return e.what();
  }
}
}  // namespace

TEST_CASE("names that lead nowhere are named, with what there is") {
  for (const char* text : {"no-such-host.invalid:4000", "eth77:4000"}) {
    const std::string said = cannot_listen(text);
    CHECK((contains(said, "cannot resolve '") || contains(said, "name service")));
    CHECK(contains(said, text));
    CHECK(contains(said, "as a number"));
  }
}

TEST_CASE("an interface's name stands for its address") {
  CHECK(contains(cannot_listen("lo:0"), "listens at 127.0.0.1:"));
}

TEST_CASE("numbers need no name service") {
  CHECK(contains(cannot_listen("127.0.0.1:0"), "listens at 127.0.0.1:"));
  CHECK(contains(cannot_listen("127.0.0.2:0"), "listens at 127.0.0.2:"));
}
