#include "weightcast/device/host_copy.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "pattern.h"
#include "reference_cast.h"
#include "weightcast/base/hash.h"

namespace weightcast {
namespace {

using testing::fill_pattern;
using testing::first_difference;
using testing::Guarded;
using testing::interesting_source;
using testing::reference_cast;

std::vector<uint64_t> block_digests_of(ConstMemoryView bytes) {
  std::vector<uint64_t> digests;
  for (size_t at = 0; at < bytes.size(); at += 64 * 1024) {
    digests.push_back(xxh3_64(bytes.subspan(at, std::min<size_t>(64 * 1024, bytes.size() - at))));
  }
  return digests;
}

TEST(HostCopy, MovesAndDigestsEveryBlock) {
  for (const size_t size :
       std::initializer_list<size_t>{0, 1, 777, 65535, 65536, 65537, 131072, 200000, 1000003}) {
    std::vector<std::byte> source(size);
    fill_pattern(source, 3, size);
    Guarded destination(size, size % 64);
    std::vector<uint64_t> digests(num_digest_blocks(size));
    host_copy({destination.bytes(), source, Conversion::kNone, digests});
    EXPECT_EQ(first_difference(destination.bytes(), 3, size), size);
    EXPECT_EQ(digests, block_digests_of(source)) << size;
    EXPECT_TRUE(destination.intact());
  }
}

TEST(HostCopy, MovesWithoutDigests) {
  std::vector<std::byte> source(1'000'003);
  fill_pattern(source, 3, 1);
  Guarded destination(source.size(), 5);
  host_copy({.destination = destination.bytes(), .source = source});
  EXPECT_EQ(first_difference(destination.bytes(), 3, 1), source.size());
  EXPECT_TRUE(destination.intact());
}

void expect_cast(Conversion conversion, ConstMemoryView source) {
  const auto wanted = reference_cast(conversion, source);
  for (const size_t num_digests : {size_t{0}, num_digest_blocks(wanted.size())}) {
    Guarded destination(wanted.size(), 0);
    std::vector<uint64_t> digests(num_digests);
    host_copy({destination.bytes(), source, conversion, digests});
    EXPECT_TRUE(std::ranges::equal(destination.bytes(), wanted));
    EXPECT_TRUE(destination.intact());
    if (num_digests != 0) {
      EXPECT_EQ(digests, block_digests_of(wanted));
    }
  }
}

TEST(HostCopy, CastsAndDigestsWhatItWrote) {
  for (const Conversion conversion :
       {Conversion::kF32ToBf16, Conversion::kF32ToF16, Conversion::kF64ToF32,
        Conversion::kF64ToBf16, Conversion::kF64ToF16}) {
    const auto source = interesting_source(conversion);
    expect_cast(conversion, source);
    for (const size_t count : std::initializer_list<size_t>{0, 1, 4097, 32768, 32769}) {
      expect_cast(conversion, ConstMemoryView(source).first(count * widths(conversion).source));
    }
  }
}

TEST(HostDigest, EqualsTheDigestOfTheCopy) {
  std::vector<std::byte> bytes(300'000);
  fill_pattern(bytes, 1, 1);
  std::vector<uint64_t> digests(num_digest_blocks(bytes.size()));
  host_digest(bytes, digests);
  EXPECT_EQ(digests, block_digests_of(bytes));
}

TEST(HostCopyDeathTest, RefusesSizesThatDoNotAgree) {
  std::vector<std::byte> small(100);
  std::vector<std::byte> large(101);
  std::vector<uint64_t> digests(2);
  EXPECT_DEATH(host_copy({.destination = small, .source = large}), "destination.size");
  EXPECT_DEATH(host_copy({small, small, Conversion::kF32ToF16, {}}), "destination.size");
  EXPECT_DEATH(host_copy({small, small, Conversion::kNone, digests}), "num_digest_blocks");
}

TEST(Widths, AreThoseOfTheElements) {
  EXPECT_EQ(widths(Conversion::kNone).source, 1);
  EXPECT_EQ(widths(Conversion::kNone).destination, 1);
  EXPECT_EQ(widths(Conversion::kF32ToBf16).source, 4);
  EXPECT_EQ(widths(Conversion::kF32ToBf16).destination, 2);
  EXPECT_EQ(widths(Conversion::kF64ToF32).source, 8);
  EXPECT_EQ(widths(Conversion::kF64ToF32).destination, 4);
  EXPECT_EQ(widths(Conversion::kF64ToF16).destination, 2);
}

}  // namespace
}  // namespace weightcast
