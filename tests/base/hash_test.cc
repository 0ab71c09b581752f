#include "weightcast/base/hash.h"

#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "pattern.h"

namespace weightcast {
namespace {

// Values of the specification's reference implementation for the empty input, seed 0.
TEST(Xxh3, IsTheStandardHash) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2);
  EXPECT_EQ(xxh3_128({}).hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Xxh3, SeesEveryBitOfLongAndShortInputs) {
  for (const size_t size :
       std::initializer_list<size_t>{1, 16, 17, 128, 129, 240, 241, 1024, 5000}) {
    std::vector<std::byte> bytes(size);
    testing::fill_pattern(bytes, 1, 1);
    const uint64_t short_hash = xxh3_64(bytes);
    const Hash128 long_hash = xxh3_128(bytes);
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      bytes[place] ^= std::byte{0x10};
      EXPECT_NE(xxh3_64(bytes), short_hash) << size;
      EXPECT_NE(xxh3_128(bytes), long_hash) << size;
      bytes[place] ^= std::byte{0x10};
    }
    EXPECT_EQ(xxh3_64(bytes), short_hash);
  }
}

TEST(Xxh3, DoesNotDependOnAlignment) {
  std::vector<std::byte> bytes(5000 + 64);
  testing::fill_pattern(bytes, 1, 1);
  const std::vector<std::byte> copy(bytes.begin() + 3, bytes.begin() + 4003);
  EXPECT_EQ(xxh3_64(std::span(bytes).subspan(3, 4000)), xxh3_64(copy));
  EXPECT_EQ(xxh3_128(std::span(bytes).subspan(3, 4000)), xxh3_128(copy));
}

TEST(Hash128, PrintsItsBytesInOrder) {
  Hash128 hash;
  hash.bytes[0] = std::byte{0xf0};
  hash.bytes[15] = std::byte{0x0a};
  EXPECT_EQ(hash.hex(), "f000000000000000000000000000000a");
  EXPECT_LT(Hash128{}, hash);
}

}  // namespace
}  // namespace weightcast
