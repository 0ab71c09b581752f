#include "weightcast/base/random.h"

#include <cerrno>
#include <vector>

#include <sys/random.h>

#include "weightcast/base/check.h"

namespace weightcast {

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    WEIGHTCAST_CHECK(got > 0 || errno == EINTR);
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

std::string random_hex(size_t num_bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::vector<std::byte> bytes(num_bytes);
  fill_random(bytes);
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace weightcast
