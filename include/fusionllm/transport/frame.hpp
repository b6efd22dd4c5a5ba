// SPDX-License-Identifier: Apache-2.0
// What travels on a connection: frames, each a fixed header and up to `frame_cap` bytes of payload. A message is cut
// into frames (chunks) that carry its number; chunks of several messages interleave, those of one message keep order.
//
// The header, little-endian, 80 bytes:
//    0 u32 magic "FLLM"      4 u16 wire version     6 u16 kind          8 u32 plan epoch     12 u32 micro-batch
//   16 u64 step             24 u32 edge            28 u32 source       32 u32 destination    36 u16 codec
//   38 u16 zero             40 u32 message number  44 u32 chunk length 48 u64 chunk offset   56 u64 total length
//   64 u64 raw length (before compression)         72 u64 XXH3 of bytes 0-71 and the chunk
// Bytes 0-5 mean the same in every wire version, so that unequal versions can name each other.
#pragma once

#include <array>
#include <cstdio>

#include "../core/version.hpp"
#include "checksum.hpp"

namespace fusionllm::inline v0 {

/// Kinds below `application` belong to the transport; others are the protocol's, which may add its own from `custom`.
enum class frame_kind : u16 {
  hello = 1,
  welcome = 2,
  ready = 3,
  bye = 4,
  application = 16,
  control = 16,     ///< an encoded control message
  heartbeat = 17,
  activation = 18,  ///< forward, over a cut edge
  cotangent = 19,   ///< backward, over a cut edge
  gradient = 20,    ///< of a parameter with several owners
  parameter = 21,
  bulk = 22,        ///< checkpoints, replicas, probes
  custom = 64
};

/// The caller fills the first group; the transport fills the second when it cuts a message into frames.
struct frame_header {
  frame_kind kind = frame_kind::control;
  u16 codec = 0;          ///< how the payload is encoded; 0 is raw
  u32 epoch = 0;          ///< of the plan
  u32 micro_batch = 0;
  u64 step = 0;
  u32 edge = 0;           ///< of the cut, or whatever the kind says
  u32 source = 0;         ///< rank
  u32 destination = 0;    ///< rank
  u64 raw_length = 0;     ///< bytes before compression; 0 means the total length

  u32 message = 0;        ///< counts up per direction of a connection
  u32 chunk_length = 0;
  u64 chunk_offset = 0;
  u64 total_length = 0;   ///< of the message's payload
};

inline constexpr u32 frame_magic = 0x4D4C4C46;  // "FLLM" in memory
inline constexpr std::size_t frame_header_bytes = 80;
inline constexpr std::size_t frame_prefix_bytes = 8;  ///< holds what every wire version agrees on
using encoded_header = std::array<std::byte, frame_header_bytes>;

/// Bounds that a receiver sets before it believes a header.
struct frame_limits {
  u64 frame_cap = 256 << 10;     ///< bytes of payload in a frame
  u64 message_cap = u64(1) << 32;  ///< bytes of payload in a message
};

/// Bytes on the wire for a message of `payload` bytes cut into chunks of `chunk`: what a cost model should count.
constexpr u64 wire_bytes(u64 payload, u64 chunk) {
  const u64 frames = payload == 0 ? 1 : (payload + chunk - 1) / chunk;
  return payload + frames * frame_header_bytes;
}

namespace detail {
inline constexpr std::size_t checksum_offset = 72;

inline encoded_header encode_without_checksum(const frame_header& h, unsigned version) {
  encoded_header out{};
  std::byte* p = out.data();
  store_little(p, frame_magic);
  store_little(p + 4, u16(version));
  store_little(p + 6, u16(h.kind));
  store_little(p + 8, h.epoch);
  store_little(p + 12, h.micro_batch);
  store_little(p + 16, h.step);
  store_little(p + 24, h.edge);
  store_little(p + 28, h.source);
  store_little(p + 32, h.destination);
  store_little(p + 36, h.codec);
  store_little(p + 40, h.message);
  store_little(p + 44, h.chunk_length);
  store_little(p + 48, h.chunk_offset);
  store_little(p + 56, h.total_length);
  store_little(p + 64, h.raw_length);
  return out;
}
}  // namespace detail

/// The header with the checksum of itself and of `parts`, which hold the chunk's `chunk_length` bytes.
inline encoded_header encode_frame(const frame_header& h, std::span<const const_byte_span> parts,
                                   unsigned version = wire_version) {
  encoded_header out = detail::encode_without_checksum(h, version);
  const const_byte_span head{out.data(), detail::checksum_offset};
  store_little(out.data() + detail::checksum_offset, checksum(head, parts));
  return out;
}

/// Checks magic and wire version on the first `frame_prefix_bytes`. Errors: protocol (not this protocol at all),
/// handshake (another version; prints both).
inline void check_frame_prefix(const_byte_span first, unsigned version = wire_version) {
  const u32 magic = load_little<u32>(first.data());
  if (magic != frame_magic) {
    char seen[16];
    std::snprintf(seen, sizeof seen, "0x%08x", unsigned(magic));
    fail(errc::protocol, "frame magic is ", seen, ", expected 0x4d4c4c46: this is not fusionllm traffic");
  }
  const unsigned theirs = load_little<u16>(first.data() + 4);
  if (theirs != version)
    fail(errc::handshake, "wire version ", theirs, " there, ", version, " (library ", version_major, '.',
         version_minor, '.', version_patch, ") here: run the same release on every peer");
}

/// Decodes a header and checks its lengths; nothing may be allocated for a frame before this. Errors: protocol,
/// handshake.
inline frame_header decode_frame(const encoded_header& in, const frame_limits& limits,
                                 unsigned version = wire_version) {
  check_frame_prefix(in, version);
  const std::byte* p = in.data();
  frame_header h;
  h.kind = frame_kind(load_little<u16>(p + 6));
  h.epoch = load_little<u32>(p + 8);
  h.micro_batch = load_little<u32>(p + 12);
  h.step = load_little<u64>(p + 16);
  h.edge = load_little<u32>(p + 24);
  h.source = load_little<u32>(p + 28);
  h.destination = load_little<u32>(p + 32);
  h.codec = load_little<u16>(p + 36);
  h.message = load_little<u32>(p + 40);
  h.chunk_length = load_little<u32>(p + 44);
  h.chunk_offset = load_little<u64>(p + 48);
  h.total_length = load_little<u64>(p + 56);
  h.raw_length = load_little<u64>(p + 64);
  if (h.chunk_length > limits.frame_cap)
    fail(errc::protocol, "frame claims a chunk of ", h.chunk_length, " bytes, the cap is ", limits.frame_cap,
         ": give both sides the same frame cap");
  if (h.total_length > limits.message_cap)
    fail(errc::protocol, "frame claims a message of ", h.total_length, " bytes, the cap is ", limits.message_cap,
         ": raise the message cap if such tensors are meant");
  if (h.chunk_offset > h.total_length || h.chunk_length > h.total_length - h.chunk_offset)
    fail(errc::protocol, "frame claims bytes ", h.chunk_offset, " to ", h.chunk_offset, " + ", h.chunk_length,
         " of a message of ", h.total_length);
  if (h.chunk_length == 0 && h.total_length != 0)
    fail(errc::protocol, "frame claims an empty chunk of a message of ", h.total_length, " bytes");
  return h;
}

/// Checks a header and its chunk against the checksum. Error: protocol.
inline void verify_frame(const encoded_header& in, const_byte_span chunk) {
  const u64 claimed = load_little<u64>(in.data() + detail::checksum_offset);
  const const_byte_span head{in.data(), detail::checksum_offset};
  const u64 found = checksum(head, {&chunk, 1});
  if (claimed != found)
    fail(errc::protocol, "frame checksum is ", found, ", its header says ", claimed,
         ": the bytes were damaged on the way");
}

}  // namespace fusionllm::inline v0
