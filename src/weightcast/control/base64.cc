#include "weightcast/control/base64.h"

#include <cstdint>

namespace weightcast {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_base64url(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8) | std::to_integer<uint32_t>(byte);
    num_bits += 8;
    while (num_bits >= 6) {
      num_bits -= 6;
      text += kAlphabet[(bits >> num_bits) & 63];
    }
  }
  if (num_bits > 0) text += kAlphabet[(bits << (6 - num_bits)) & 63];
  return text;
}

std::optional<std::vector<std::byte>> from_base64url(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const char c : text) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> num_bits));
    }
  }
  const uint32_t rest = bits & ((1u << num_bits) - 1);
  if (num_bits >= 6 || rest != 0) return std::nullopt;
  return bytes;
}

}  // namespace weightcast
