// Numbers and identifiers as they stand on the wire (docs/wire.md): append only.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "weightcast/base/result.h"

namespace weightcast {

inline constexpr char kBucketHeaderIdentifier[] = "WCBH";
inline constexpr char kTicketIdentifier[] = "WCTK";

constexpr uint8_t to_wire_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return 1;
    case Code::kBadInput: return 2;
    case Code::kPeerLost: return 3;
    case Code::kDeadline: return 4;
    case Code::kCorruption: return 5;
    case Code::kRefused: return 6;
    case Code::kNoResource: return 7;
    case Code::kUnsupported: return 8;
    case Code::kInternal: return 9;
  }
  return 9;
}

constexpr std::optional<Code> from_wire_code(uint8_t code) {
  switch (code) {
    case 1: return Code::kInvalidArgument;
    case 2: return Code::kBadInput;
    case 3: return Code::kPeerLost;
    case 4: return Code::kDeadline;
    case 5: return Code::kCorruption;
    case 6: return Code::kRefused;
    case 7: return Code::kNoResource;
    case 8: return Code::kUnsupported;
    case 9: return Code::kInternal;
    default: return std::nullopt;
  }
}

}  // namespace weightcast
