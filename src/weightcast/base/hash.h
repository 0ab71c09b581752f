// XXH3 (xxHash 0.8), by the library's run-time dispatch to the widest vectors of the CPU.
// Pure functions, thread-safe.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weightcast {

/// 128 bits of XXH3, in the canonical (big-endian) byte order of xxHash.
struct Hash128 {
  std::array<std::byte, 16> bytes{};

  /// 32 hexadecimal digits.
  [[nodiscard]] std::string hex() const;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

uint64_t xxh3_64(std::span<const std::byte> bytes);
Hash128 xxh3_128(std::span<const std::byte> bytes);

}  // namespace weightcast
