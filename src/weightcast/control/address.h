// Where a root listens and what it publishes.
// Pure functions but for the system's tables of names and interfaces; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/result.h"

namespace weightcast {

/// `tcp://HOST:PORT` with its host resolved.
struct ListenAddress {
  std::string host;    ///< numeric, without brackets
  bool is_v6 = false;  ///< `host` is an IPv6 address, IPv4-mapped ones included
  bool is_wildcard = false;
  bool both_families = false;  ///< `*` and `[::]`: IPv4 and IPv6
  uint16_t port = 0;           ///< 0: any
};

/// HOST is a name, an IPv4 address, an IPv6 address in brackets, or `*`. Errors:
/// `kInvalidArgument`. May ask the name service.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// `tcp://HOST:PORT`, with brackets where they are needed.
std::string endpoint(const std::string& host, bool is_v6, uint16_t port);

/// What members may connect to: the address itself or, for a wildcard, every address that is up,
/// with those of the loopback last, since elsewhere they lead elsewhere.
Result<std::vector<std::string>> published_endpoints(const ListenAddress& address, uint16_t port);

}  // namespace weightcast
