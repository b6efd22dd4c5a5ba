// SPDX-License-Identifier: Apache-2.0
#include <fusionllm/transport/handshake.hpp>

#include "catch.hpp"
#include "recorder.hpp"

namespace fl = fusionllm;
using fusionllm_test::contains;
using fusionllm_test::named;

namespace {
const auto welcome_all = [](const fl::hello&) { return std::string(); };
template <class F>
std::string problem(fl::errc code, F&& f) {
  try {
    f();
  } catch (const fl::error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("hello, welcome, ready") {
  const auto oa = named("a"), ob = named("b");
  fl::handshake a(fl::side::connecting, oa), b(fl::side::accepting, ob);
  CHECK(b.begin("").say == fl::frame_kind::application);
  CHECK(contains(b.missing(), "no hello"));
  const auto one = a.begin("10.0.0.1:5");
  REQUIRE(one.say == fl::frame_kind::hello);
  const auto two = b.take(one.say, one.payload, "10.0.0.1", "", welcome_all);
  REQUIRE(two.say == fl::frame_kind::welcome);
  CHECK_FALSE(two.open);
  CHECK(b.remote().name == "a");
  CHECK(b.remote().announce == "10.0.0.1:5");
  CHECK(contains(b.missing(), "did not confirm"));
  const auto three = a.take(two.say, two.payload, "10.0.0.2", "", welcome_all);
  REQUIRE(three.say == fl::frame_kind::ready);
  CHECK(three.open);
  const auto four = b.take(three.say, three.payload, "10.0.0.1", "", welcome_all);
  CHECK(four.say == fl::frame_kind::application);
  CHECK(four.open);
  CHECK(a.remote().name == "b");
  CHECK(b.remote().token.empty());
}

TEST_CASE("messages out of turn, refusals, loopback announced from afar") {
  const auto oa = named("a"), ob = named("b");
  fl::handshake a(fl::side::connecting, oa), b(fl::side::accepting, ob);
  const auto hello = a.begin("127.0.0.1:5");
  for (const auto kind : {fl::frame_kind::welcome, fl::frame_kind::ready, fl::frame_kind(15)})
    CHECK(contains(problem(fl::errc::protocol, [&] { b.take(kind, hello.payload, "::1", "", welcome_all); }), "out of turn"));
  CHECK(contains(problem(fl::errc::protocol, [&] { a.take(fl::frame_kind::hello, hello.payload, "::1", "", welcome_all); }),
                 "out of turn"));
  CHECK(problem(fl::errc::handshake, [&] {
          b.take(hello.say, hello.payload, "::1", "", [](const fl::hello& h) { return h.name + " is one too many"; });
        }) == "a is one too many");
  fl::handshake c(fl::side::accepting, ob);
  CHECK(contains(problem(fl::errc::network, [&] { c.take(hello.say, hello.payload, "10.0.0.1", "", welcome_all); }),
                 "127.0.0.1:5 is announced to 10.0.0.1"));
}
