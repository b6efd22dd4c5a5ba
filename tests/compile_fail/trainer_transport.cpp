// SPDX-License-Identifier: Apache-2.0
// A transport that no command would use is not left out without a word: it might be the one that encrypts.
// expect: the transport's seat takes asio_tcp: commands know no other transport yet
#include <fusionllm/cluster/policies.hpp>

namespace fl = fusionllm;

struct encrypted {};
template <>
class fl::basic_asio_tcp<encrypted> {
 public:
  using seat = fl::transport_seat;
};
template <>
class fl::basic_asio_tcp<fl::tcp_stream> {
 public:
  using seat = fl::transport_seat;
};

#ifdef POSITIVE
using stream = fl::tcp_stream;
#else
using stream = encrypted;
#endif

static_assert(fl::detail::check_policy<fl::basic_asio_tcp<stream>>::value);
