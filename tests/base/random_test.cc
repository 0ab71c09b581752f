#include "weightcast/base/random.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weightcast {
namespace {

TEST(RandomHex, HasTwoLowerCaseDigitsAByteAndNeverRepeats) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_hex(16);
    EXPECT_EQ(text.size(), 32u);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(random_hex(0), "");
}

TEST(FillRandom, FillsEveryByte) {
  // More than one call of the kernel gives at once; each byte differs from zero in some round.
  std::vector<std::byte> ever(1000);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> bytes(ever.size());
    fill_random(bytes);
    for (size_t i = 0; i < ever.size(); ++i) ever[i] |= bytes[i];
  }
  EXPECT_THAT(ever, ::testing::Not(::testing::Contains(std::byte{0})));
}

}  // namespace
}  // namespace weightcast
