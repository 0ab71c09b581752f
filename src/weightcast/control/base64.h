// base64url without padding (RFC 4648, section 5).
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightcast {

std::string to_base64url(std::span<const std::byte> bytes);
/// Nothing where `text` is not what `to_base64url` would have written.
std::optional<std::vector<std::byte>> from_base64url(std::string_view text);

}  // namespace weightcast
