#include "pattern.h"

#include <algorithm>
#include <cstring>

namespace weightcast::testing {
namespace {

// splitmix64: eight pattern bytes for the aligned word number `word`.
uint64_t pattern_word(uint64_t version, uint64_t tensor, uint64_t word) {
  uint64_t x = version * 0x9e3779b97f4a7c15 + tensor * 0xbf58476d1ce4e5b9 + word + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Calls `visit(position in bytes, pattern bytes, count)` for each aligned word that `size` covers.
template <typename Visit>
void for_each_word(size_t size, uint64_t version, uint64_t tensor, uint64_t offset, Visit visit) {
  for (size_t done = 0; done < size;) {
    const uint64_t place = offset + done;
    const uint64_t word = pattern_word(version, tensor, place / 8);
    const size_t skip = place % 8;
    const size_t count = std::min<size_t>(8 - skip, size - done);
    std::byte pattern[8];
    std::memcpy(pattern, &word, 8);
    if (!visit(done, pattern + skip, count)) return;
    done += count;
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, uint64_t version, uint64_t tensor, uint64_t offset) {
  for_each_word(bytes.size(), version, tensor, offset,
                [&](size_t at, const std::byte* pattern, size_t count) {
                  std::memcpy(bytes.data() + at, pattern, count);
                  return true;
                });
}

size_t first_difference(std::span<const std::byte> bytes, uint64_t version, uint64_t tensor,
                        uint64_t offset) {
  size_t first = bytes.size();
  for_each_word(bytes.size(), version, tensor, offset,
                [&](size_t at, const std::byte* pattern, size_t count) {
                  if (std::memcmp(bytes.data() + at, pattern, count) == 0) return true;
                  first = at;
                  while (bytes[first] == pattern[first - at]) ++first;
                  return false;
                });
  return first;
}

std::vector<std::byte> make_pattern(const TensorMeta& meta, uint64_t version, uint64_t tensor) {
  std::vector<std::byte> bytes(byte_size(meta));
  fill_pattern(bytes, version, tensor);
  return bytes;
}

}  // namespace weightcast::testing
