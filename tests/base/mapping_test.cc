#include "weightcast/base/mapping.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pattern.h"

namespace weightcast {
namespace {

using testing::fill_pattern;
using testing::first_difference;
using ::testing::HasSubstr;

constexpr size_t kSize = 100'000;

std::span<std::byte> bytes_of(const Mapping& mapping) { return {mapping.data(), mapping.size()}; }

size_t num_resident(std::span<std::byte> pages) {
  std::vector<unsigned char> resident((pages.size() + 4095) / 4096);
  EXPECT_EQ(::mincore(pages.data(), pages.size(), resident.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(resident, [](auto r) { return (r & 1) != 0; }));
}

TEST(Mapping, SharesBytesBetweenTwoViewsOfAMemfd) {
  const Fd fd = *create_memfd("mapping-test", kSize);
  const Mapping writer = *Mapping::map(fd, kSize, Access::kReadWrite);
  const Mapping reader = *Mapping::map(fd, kSize, Access::kRead);
  EXPECT_NE(writer.data(), reader.data());
  fill_pattern(bytes_of(writer), 1, 1);
  EXPECT_EQ(first_difference(bytes_of(reader), 1, 1), kSize);
}

TEST(Mapping, OutlivesItsDescriptorAndMoves) {
  Mapping mapping;
  {
    const Fd fd = *create_memfd("mapping-test", kSize);
    mapping = *Mapping::map(fd, kSize, Access::kReadWrite);
  }
  fill_pattern(bytes_of(mapping), 1, 2);
  const Mapping moved = std::move(mapping);
  EXPECT_EQ(mapping.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is the promise
  EXPECT_EQ(mapping.size(), 0u);
  EXPECT_EQ(first_difference(bytes_of(moved), 1, 2), kSize);
}

TEST(Mapping, OfNoFileIsZeroed) {
  const Mapping mapping = *Mapping::anonymous(kSize);
  EXPECT_TRUE(std::ranges::all_of(bytes_of(mapping), [](auto b) { return b == std::byte{0}; }));
  const auto huge = Mapping::anonymous(size_t{1} << 60);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), Code::kNoResource);
}

TEST(Memfd, CanNeitherGrowNorShrink) {
  const Fd fd = *create_memfd("mapping-test", kSize);
  EXPECT_NE(::ftruncate(fd.get(), kSize + 1), 0);
  EXPECT_NE(::ftruncate(fd.get(), kSize - 1), 0);
  EXPECT_EQ(::ftruncate(fd.get(), kSize), 0);
}

TEST(Memfd, CannotBeMappedForWritingOnceSealed) {
  const Fd fd = *create_memfd("mapping-test", kSize);
  const Mapping before = *Mapping::map(fd, kSize, Access::kReadWrite);
  ASSERT_TRUE(seal_future_writes(fd));
  EXPECT_FALSE(Mapping::map(fd, kSize, Access::kReadWrite));
  const std::byte byte{1};
  EXPECT_EQ(::pwrite(fd.get(), &byte, 1, 0), -1);
  const Mapping reader = *Mapping::map(fd, kSize, Access::kRead);
  fill_pattern(bytes_of(before), 1, 3);
  EXPECT_EQ(first_difference(bytes_of(reader), 1, 3), kSize);
}

TEST(Memfd, SaysWhichLimitToRaiseInsteadOfDyingOfIt) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = kSize - 1;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
  const auto fd = create_memfd("mapping-test", kSize);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code(), Code::kNoResource);
  EXPECT_THAT(fd.error().message(), HasSubstr("ulimit -f"));
}

TEST(Populate, MakesARangeResidentWhereverItBegins) {
  const Fd fd = *create_memfd("mapping-test", 64 * 4096);
  const Mapping mapping = *Mapping::map(fd, 64 * 4096, Access::kReadWrite);
  EXPECT_EQ(num_resident(bytes_of(mapping)), 0u);
  // From the middle of page 3 to the first byte of page 11.
  ASSERT_TRUE(
      populate(bytes_of(mapping).subspan(3 * 4096 + 100, 8 * 4096 - 99), Access::kReadWrite));
  EXPECT_EQ(num_resident(bytes_of(mapping)), 9u);
  EXPECT_EQ(num_resident(bytes_of(mapping).subspan(3 * 4096, 9 * 4096)), 9u);
}

TEST(Populate, ReadsWithoutWriting) {
  const Fd fd = *create_memfd("mapping-test", kSize);
  const Mapping writer = *Mapping::map(fd, kSize, Access::kReadWrite);
  fill_pattern(bytes_of(writer), 1, 4);
  const Mapping reader = *Mapping::map(fd, kSize, Access::kRead);
  ASSERT_TRUE(populate(bytes_of(reader), Access::kRead));
  EXPECT_EQ(first_difference(bytes_of(reader), 1, 4), kSize);
}

}  // namespace
}  // namespace weightcast
