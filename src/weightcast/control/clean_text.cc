#include "weightcast/control/clean_text.h"

#include <algorithm>

#include "weightcast/plan/text.h"

namespace weightcast {

std::string clean_text(std::string_view text, size_t max_size) {
  std::string clean(text.substr(0, max_size));
  if (clean.size() < text.size()) {
    // A cut may fall into a character of up to four bytes: drop its beginning.
    size_t start = clean.size();
    const auto continues = [&](size_t at) {
      return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    while (start > 0 && clean.size() - start < 4 && continues(start)) --start;
    clean.resize(start);
  }
  if (is_utf8(clean)) return clean;
  std::ranges::replace_if(
      clean, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return clean;
}

}  // namespace weightcast
