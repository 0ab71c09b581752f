// The ticket: everything a member needs to find and enter a group, and the right to do so.
// Values: copyable, any thread. Whoever has the text may join; it must not travel in argv.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/control/messages.h"

namespace weightcast {

/// A Curve25519 key pair in Z85 text of 40 characters each.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
  friend bool operator==(const KeyPair&, const KeyPair&) = default;
};
/// Errors: `kUnsupported` when libzmq was built without CURVE.
Result<KeyPair> make_key_pair();

struct Ticket {
  uint32_t protocol = kProtocolVersion;
  std::string session_id;              ///< 32 hexadecimal digits
  std::vector<std::string> endpoints;  ///< `tcp://ADDRESS:PORT`, the likeliest first
  std::string server_public_key;
  KeyPair client;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// `wc1:` and base64url text.
std::string encode(const Ticket& ticket);
/// Decodes text that may come from anybody; white space around it is ignored. Errors: `kRefused`
/// for another protocol version, `kCorruption` for anything else that is no ticket.
Result<Ticket> decode_ticket(std::string_view text);

}  // namespace weightcast
