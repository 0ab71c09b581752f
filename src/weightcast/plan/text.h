// Text from outside: is it UTF-8, and how to show it in a message.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace weightcast {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

/// `text` as a message may show it: control characters and bytes that are not UTF-8 become `\xNN`,
/// and what exceeds about `max_size` bytes becomes `…`.
std::string printable(std::string_view text, size_t max_size = 200);

}  // namespace weightcast
