#include "weightcast/plan/text.h"

#include <cstdint>

namespace weightcast {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// Bytes of the character that `text` starts with, or 0 where that is not UTF-8. The ranges of the
// second byte are those of RFC 3629, section 4.
size_t character_size(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte_at(text, 1) < low || byte_at(text, 1) > high) return 0;
  for (size_t i = 2; i < size; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

void append_escaped(std::string& text, uint8_t byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  text += "\\x";
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text, size_t max_size) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= max_size) return shown + "…";
    const size_t size = character_size(text);
    const uint8_t first = byte_at(text, 0);
    // C1 control characters, U+0080 to U+009F, are 0xc2 and a byte below 0xa0.
    const bool c1_control = size == 2 && first == 0xc2 && byte_at(text, 1) < 0xa0;
    if (size == 0 || first < 0x20 || first == 0x7f || c1_control) {
      append_escaped(shown, first);
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return shown;
}

}  // namespace weightcast
