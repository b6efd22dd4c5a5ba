// SPDX-License-Identifier: Apache-2.0
// One exception type. Its code is the exit status of a command; docs/errors.md has a paragraph for each.
// A message says what was found, what was expected and what to do, in this order.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace fusionllm::inline v0 {

enum class errc : int {
  ok = 0,
  internal = 1,     ///< a defect of the library
  usage = 2,        ///< command line: unknown command, flag or value
  config = 3,       ///< configuration file or resolved configuration
  topology = 4,     ///< topology file
  plan = 5,         ///< no feasible plan, or a plan that does not fit the model
  data = 6,         ///< training data: missing, too short, out of range
  checkpoint = 7,   ///< checkpoint: missing, damaged, of another model
  network = 8,      ///< address, name, port, connection
  handshake = 9,    ///< a peer of another version, run, model or configuration
  timeout = 10,     ///< a bounded wait ran out; the message names whom it waited for
  peer_lost = 11,   ///< a peer closed its connection in the middle of a run
  protocol = 12,    ///< malformed bytes on the wire
  numeric = 13,     ///< a non-finite value where none may be
  model = 14,       ///< a batch, parameter or name that does not fit the model
  resource = 15,    ///< memory, disk, file descriptors
  diverged = 16,    ///< too many steps in a row were skipped
  interrupted = 130 ///< stopped by the user, after a checkpoint
};

class error : public std::runtime_error {
 public:
  error(errc code, const std::string& what) : std::runtime_error(what), code_(code) {}
  errc code() const noexcept { return code_; }

 private:
  errc code_;
};

/// Throws `error` with the parts streamed one after another.
template <class... Parts>
[[noreturn]] void fail(errc code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw error(code, std::move(text).str());
}

}  // namespace fusionllm::inline v0
