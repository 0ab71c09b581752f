#include "weightcast/control/address.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "weightcast/control/limits.h"

namespace weightcast {
namespace {

struct HostAndPort {
  std::string host;
  bool bracketed = false;
  uint16_t port = 0;
};

Error invalid(std::string_view text, std::string_view why) {
  return Error(Code::kInvalidArgument,
               fmt::format("address {}: {}; write tcp://HOST:PORT, for example tcp://127.0.0.1:0 "
                           "or tcp://[::1]:5000",
                           text, why));
}

Result<HostAndPort> split(std::string_view text) {
  constexpr std::string_view kScheme = "tcp://";
  if (!text.starts_with(kScheme)) return invalid(text, "it does not begin with tcp://");
  const std::string_view rest = text.substr(kScheme.size());
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return invalid(text, "no port");
  HostAndPort result;
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    result.bracketed = true;
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return invalid(text, "an IPv6 address needs brackets");
  }
  if (host.empty()) return invalid(text, "no host");
  result.host = host;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc{} || end != port.data() + port.size()) {
    return invalid(text, "the port is no number from 0 to 65535");
  }
  return result;
}

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

Result<ListenAddress> resolve(std::string_view text, const HostAndPort& parts) {
  addrinfo hints{};
  hints.ai_family = parts.bracketed ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | (parts.bracketed ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(parts.host.c_str(), nullptr, &hints, &found); error != 0) {
    return invalid(text, fmt::format("the host is unknown ({})", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  ListenAddress address;
  address.port = parts.port;
  address.is_v6 = found->ai_family == AF_INET6;
  address.host = numeric(found->ai_addr, found->ai_addrlen);
  if (address.host.empty()) return invalid(text, "the host has no address");
  if (address.is_v6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    address.both_families = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
    // ::ffff:0.0.0.0 is the IPv4 wildcard in other clothes.
    address.is_wildcard = address.both_families || (mapped && v6->sin6_addr.s6_addr32[3] == 0);
  } else {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    address.is_wildcard = v4->sin_addr.s_addr == INADDR_ANY;
  }
  return address;
}

// The numeric address of an interface that members may use, or nothing.
std::optional<std::string> usable(const ifaddrs& interface, bool both_families) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0) return std::nullopt;
  if (interface.ifa_addr->sa_family == AF_INET) {
    return numeric(interface.ifa_addr, sizeof(sockaddr_in));
  }
  if (interface.ifa_addr->sa_family != AF_INET6 || !both_families) return std::nullopt;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr);
  // A link-local address means something only together with the other host's interface.
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return std::nullopt;
  return numeric(interface.ifa_addr, sizeof(sockaddr_in6));
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const Result<HostAndPort> parts = split(text);
  if (!parts) return parts.error();
  if (parts->host == "*" && !parts->bracketed) {
    return ListenAddress{.host = "::",
                         .is_v6 = true,
                         .is_wildcard = true,
                         .both_families = true,
                         .port = parts->port};
  }
  return resolve(text, *parts);
}

std::string endpoint(const std::string& host, bool is_v6, uint16_t port) {
  return is_v6 ? fmt::format("tcp://[{}]:{}", host, port) : fmt::format("tcp://{}:{}", host, port);
}

Result<std::vector<std::string>> published_endpoints(const ListenAddress& address, uint16_t port) {
  if (!address.is_wildcard) {
    return std::vector<std::string>{endpoint(address.host, address.is_v6, port)};
  }
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return system_error(errno, "getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  std::vector<std::string> endpoints;
  std::vector<std::string> loopback;
  for (const ifaddrs* item = found; item != nullptr; item = item->ifa_next) {
    const auto host = usable(*item, address.both_families);
    if (!host || host->empty()) continue;
    auto& list = (item->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : endpoints;
    list.push_back(endpoint(*host, item->ifa_addr->sa_family == AF_INET6, port));
  }
  endpoints.insert(endpoints.end(), loopback.begin(), loopback.end());
  if (endpoints.size() > kMaxEndpoints) endpoints.resize(kMaxEndpoints);
  if (endpoints.empty()) return Error(Code::kNoResource, "no network interface is up");
  return endpoints;
}

}  // namespace weightcast
