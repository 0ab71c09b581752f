// What a decoder accepts beyond the schema (docs/wire.md, "Limits").
#pragma once

#include <cstddef>
#include <cstdint>

namespace weightcast {

inline constexpr size_t kMaxHostSize = 255;  // HOST_NAME_MAX of POSIX
inline constexpr size_t kMaxBootIdSize = 64;
inline constexpr size_t kMaxErrorTextSize = 16 * 1024;
inline constexpr size_t kMaxBackendSize = 64;
inline constexpr size_t kMaxLinkNameSize = 107;  // sun_path of unix(7) less the leading zero byte
inline constexpr size_t kMaxLinkTokenSize = 64;
inline constexpr uint64_t kMaxTimeoutMs = uint64_t{7} * 24 * 3600 * 1000;

inline constexpr size_t kMaxTicketText = 64 * 1024;
inline constexpr size_t kMaxEndpoints = 64;
inline constexpr size_t kMaxEndpointSize = 300;
inline constexpr size_t kSessionIdSize = 32;
inline constexpr size_t kKeySize = 40;  // Z85 of 32 bytes, without libzmq's closing zero byte

/// Members send nothing large, so the root takes nothing large.
inline constexpr size_t kMaxMemberMessageSize = 64 * 1024;

}  // namespace weightcast
