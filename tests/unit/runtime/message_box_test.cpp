// SPDX-License-Identifier: Apache-2.0
// Messages between their arrival and their use, at the leader of a run of two: a summary is a message of any length.
#include <fusionllm/runtime/message_box.hpp>

#include "catch.hpp"
#include "engines.hpp"
#include "unit/error_of.hpp"

using namespace fusionllm_test;
namespace fl = fusionllm;

namespace {

using device = fl::reference<float>;

struct leader {
  leader()
      : share(fl::graph_of<case_gpt>(), chain_plan(fl::graph_of<case_gpt>().size(), {{0}, {2}, {1}}), 1, fl::dtype::f32, {}),
        store(share.g, share.p, 1, share.real, 7),
        compute(share.g, share.p, share.prog, 1, {fl::device_table<case_gpt, device>(), &fl::vector_functions_of<device>, &context, share.real},
                {3, case_gpt::time}, 7, store, [](const fl::edge&) { return fl::make_codec(fl::no_compression::label, {}); }, 4),
        expected(share, compute, {3, case_gpt::time}, 0),
        box(expected, buffers) {}
  device::context context;
  fl::peer_share share;
  fl::parameter_store store;
  fl::stage_compute compute;
  fl::expected_messages expected;
  fl::buffer_pool buffers;
  fl::message_box box;

  const fl::message_box::message* summary() const {
    return box.find(fl::summary_kind, 0, 0);
  }
};

std::vector<std::byte> bytes_of_summary(double loss) {
  fl::step_summary s;
  s.losses = {{0, loss}};
  std::vector<std::byte> bytes;
  s.encode(bytes);
  return bytes;
}
fl::frame_header header(u32 source, u64 step, u64 length) {
  fl::frame_header h;
  h.kind = fl::summary_kind;
  h.source = source;
  h.step = step;
  h.total_length = length;
  return h;
}

}  // namespace

TEST_CASE("a message counts once it is whole, and only in its step") {
  leader x;
  const auto bytes = bytes_of_summary(2);
  const auto now = header(0, 0, bytes.size()), next = header(0, 1, bytes.size());
  const auto memory = x.box.place(now);
  REQUIRE(memory.size() == bytes.size());
  CHECK(!x.summary());
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  x.box.deliver(next, bytes);  // copied
  CHECK(!x.summary());
  x.box.deliver(now, memory);
  REQUIRE(x.summary());
  CHECK(x.box.bytes_of(*x.summary()).data() == memory.data());
  int n = 0;
  x.box.each([&](const fl::frame_header&) { ++n; });
  CHECK(n == 1);
  CHECK(x.buffers.busy() == 2);
  x.box.drop(*x.summary());
  CHECK(!x.summary());
  CHECK(x.buffers.busy() == 1);
  x.box.end_step();
  CHECK(x.box.step() == 1);
  REQUIRE(x.summary());
  const int buffer = x.box.take(*x.summary());  // its bytes stay
  CHECK(!x.summary());
  CHECK(x.buffers.busy() == 1);
  CHECK(x.buffers[buffer] == bytes);
  x.box.release(buffer);
  CHECK(x.buffers.busy() == 0);
}

TEST_CASE("what comes twice, or is left when its step ends, is an error that names who sent it") {
  leader x;
  const auto bytes = bytes_of_summary(2);
  const auto h = header(2, 0, bytes.size());
  const auto memory = x.box.place(h);
  CHECK(error_of([&] { x.box.place(h); }).says(fl::errc::protocol, "peer 2", "twice"));
  CHECK(error_of([&] { x.box.deliver(h, bytes); }).says(fl::errc::protocol, "twice"));  // elsewhere than where it was placed
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  x.box.deliver(h, memory);
  CHECK(error_of([&] { x.box.deliver(h, memory); }).says(fl::errc::protocol, "twice"));
  CHECK(error_of([&] { x.box.end_step(); }).says(fl::errc::protocol, "peer 2", "twice"));
  CHECK(x.box.step() == 0);
  x.box.deliver(header(0, 0, bytes.size()), bytes);  // of another peer
}

TEST_CASE("a message that does not come after all gives its memory back; a short one is refused") {
  leader x;
  const auto bytes = bytes_of_summary(2);
  const auto h = header(0, 0, bytes.size());
  x.box.abandon(x.box.place(h));
  CHECK(x.buffers.busy() == 0);
  const auto memory = x.box.place(h);
  CHECK(error_of([&] { x.box.deliver(h, memory.first(8)); }).says(fl::errc::protocol, "announced", "sent 8"));
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  x.box.deliver(h, memory);
  x.box.abandon(memory);  // it is whole
  CHECK(x.summary());
  CHECK(error_of([&] { x.box.deliver(header(2, 0, 12), std::vector<std::byte>(12)); }).code == fl::errc::protocol);  // no summary
}
