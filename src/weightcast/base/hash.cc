#include "weightcast/base/hash.h"

#include <cstring>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // redirects XXH3_* to the dispatching variants
#else
#include <xxhash.h>
#endif

namespace weightcast {

std::string Hash128::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

uint64_t xxh3_64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hash128 xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash128 result;
  std::memcpy(result.bytes.data(), canonical.digest, sizeof canonical.digest);
  return result;
}

}  // namespace weightcast
