#include "weightcast/control/verified.h"

#include <fmt/format.h>

#include "weightcast/control/messages.h"

namespace weightcast {

Status verify_envelope(std::span<const std::byte> bytes, const char* identifier,
                       std::string_view what) {
  const auto* envelope = verified<wire::Envelope>(bytes, identifier);
  if (envelope == nullptr) return Error(Code::kCorruption, fmt::format("{}: malformed", what));
  if (envelope->protocol() == kProtocolVersion) return {};
  return Error(Code::kRefused, fmt::format("{}: protocol version {}, while this is version {}",
                                           what, envelope->protocol(), kProtocolVersion));
}

}  // namespace weightcast
