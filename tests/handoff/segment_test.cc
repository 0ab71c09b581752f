#include "weightcast/handoff/segment.h"

#include <gtest/gtest.h>

namespace weightcast {
namespace {

TEST(Segment, GeometryOutsideTheLimitsIsCorruption) {
  EXPECT_TRUE(check({.bucket_size = kMinBucketSize, .num_slots = 1}));
  EXPECT_TRUE(check({.bucket_size = kMaxBucketSize, .num_slots = kMaxSlots}));
  for (const SegmentGeometry& bad :
       {SegmentGeometry{0, kMinBucketSize - 1, 2}, SegmentGeometry{0, kMaxBucketSize + 1, 2},
        SegmentGeometry{0, kMinBucketSize, 0}, SegmentGeometry{0, kMinBucketSize, kMaxSlots + 1},
        SegmentGeometry{0, UINT64_MAX, UINT64_MAX}}) {
    const auto status = check(bad);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::kCorruption);
  }
}

TEST(Segment, SlotsAreAlignedAndDisjointForEveryBucketSize) {
  for (const uint64_t bucket_size : {kMinBucketSize, kMinBucketSize + 1, uint64_t{3} << 30}) {
    const SegmentGeometry geometry{.bucket_size = bucket_size, .num_slots = 3};
    size_t end = sizeof(SegmentHeader);
    for (size_t slot = 0; slot < geometry.num_slots; ++slot) {
      EXPECT_GE(header_offset(geometry, slot), end);
      EXPECT_EQ(header_offset(geometry, slot) % kSlotAlignment, 0u);
      EXPECT_GE(payload_offset(geometry, slot),
                header_offset(geometry, slot) + kEncodedHeaderOffset + kMaxHeaderSize);
      EXPECT_EQ(payload_offset(geometry, slot) % kSlotAlignment, 0u);
      end = payload_offset(geometry, slot) + bucket_size;
    }
    EXPECT_GE(segment_size(geometry), end);
  }
}

TEST(Segment, BucketsTakeTheSlotsInTurn) {
  const SegmentGeometry geometry{.bucket_size = kMinBucketSize, .num_slots = 3};
  EXPECT_EQ(slot_of(geometry, 1), 0u);
  EXPECT_EQ(slot_of(geometry, 3), 2u);
  EXPECT_EQ(slot_of(geometry, 4), 0u);
  EXPECT_EQ(predecessor(geometry, 3), 0u);
  EXPECT_EQ(predecessor(geometry, 4), 1u);
}

TEST(Segment, EachNumberHasACacheLineOfItsOwn) {
  EXPECT_EQ(sizeof(NumberWord), 64u);
  EXPECT_EQ(alignof(SegmentHeader), 64u);
  EXPECT_EQ(offsetof(SegmentHeader, published) % 64, 0u);
  EXPECT_EQ(offsetof(ReleaseWords, awaited) % 64, 0u);
}

}  // namespace
}  // namespace weightcast
