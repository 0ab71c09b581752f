#include "weightcast/plan/bucket.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plan_cases.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

using testing::bytes_tensor;
using testing::make_headers;
using testing::random_metas;

// Everything that the packing rules promise of any plan.
void expect_rules(std::span<const TensorMeta> metas, uint64_t bucket_size) {
  const BucketPlan plan = make_plan(metas, bucket_size);
  std::vector<uint64_t> done(metas.size());
  std::vector<size_t> parts(metas.size());
  uint64_t tensor = 0;
  uint64_t payload = 0;
  for (const PlannedBucket& bucket : plan.buckets) {
    ASSERT_FALSE(bucket.extents.empty());
    uint64_t end = 0;
    for (const Extent& extent : bucket.extents) {
      ASSERT_TRUE(extent.tensor == tensor || done[tensor] == byte_size(metas[tensor]));
      ASSERT_TRUE(extent.tensor == tensor || extent.tensor == tensor + 1);
      tensor = extent.tensor;
      ASSERT_EQ(extent.tensor_offset, done[tensor]);
      ASSERT_EQ(extent.tensor_offset % kSplitAlignment, 0u);
      ASSERT_EQ(extent.bucket_offset % kExtentAlignment, 0u);
      ASSERT_GE(extent.bucket_offset, end);
      ASSERT_LT(extent.bucket_offset - end, kExtentAlignment);
      ASSERT_LE(extent.size, bucket_size - extent.bucket_offset);
      end = extent.bucket_offset + extent.size;
      done[tensor] += extent.size;
      ++parts[tensor];
      payload += extent.size;
    }
    ASSERT_EQ(bucket.used_size, end);
  }
  for (size_t i = 0; i < metas.size(); ++i) {
    ASSERT_EQ(done[i], byte_size(metas[i]));
    ASSERT_EQ(parts[i] > 1, byte_size(metas[i]) > bucket_size) << i;
    ASSERT_GE(parts[i], 1u);
  }
  EXPECT_EQ(plan.payload_size, payload);
}

TEST(BucketPacker, KeepsTheRulesForRandomModels) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const uint64_t bucket_size :
         {kMinBucketSize, kMinBucketSize + 1, 3 * kMinBucketSize + 100, 4 * kMiB}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " bucket " << bucket_size);
      expect_rules(random_metas(seed, 60, bucket_size), bucket_size);
    }
  }
}

TEST(BucketPacker, SameTensorsGiveTheSamePlan) {
  const auto metas = random_metas(5, 200, kMiB);
  const BucketPlan first = make_plan(metas, kMiB);
  const BucketPlan second = make_plan(metas, kMiB);
  ASSERT_EQ(first.buckets.size(), second.buckets.size());
  for (size_t i = 0; i < first.buckets.size(); ++i) {
    EXPECT_EQ(first.buckets[i].extents, second.buckets[i].extents);
  }
}

TEST(BucketPacker, TensorsAroundAMultipleOfTheBucket) {
  const uint64_t bucket = kMiB;
  for (const uint64_t k : {1u, 2u, 5u}) {
    for (const uint64_t size : {k * bucket - 1, k * bucket, k * bucket + 1}) {
      const std::vector metas = {bytes_tensor("a", size), bytes_tensor("b", 10)};
      expect_rules(metas, bucket);
      const BucketPlan plan = make_plan(metas, bucket);
      EXPECT_EQ(plan.largest_split, size > bucket ? size : 0);
      // A tail of one byte shares its bucket; a full bucket has no room for the next tensor.
      EXPECT_EQ(plan.buckets.size(), k + 1) << size;
      EXPECT_EQ(plan.buckets.back().extents.size(), size > k * bucket ? 2u : 1u) << size;
    }
  }
}

TEST(BucketPacker, ATensorOfSevenAndAThirdBucketsIsSplitToFillThem) {
  const uint64_t bucket = kMiB;
  const std::vector metas = {bytes_tensor("small", 300), bytes_tensor("large", 73 * bucket / 10),
                             bytes_tensor("after", 1000)};
  const BucketPlan plan = make_plan(metas, bucket);
  ASSERT_EQ(plan.buckets.size(), 8u);
  EXPECT_EQ(plan.buckets[0].extents[1], (Extent{1, 0, 512, bucket - kSplitAlignment}));
  for (size_t i = 1; i < 7; ++i) {
    ASSERT_EQ(plan.buckets[i].extents.size(), 1u);
    EXPECT_EQ(plan.buckets[i].used_size, bucket);
  }
  ASSERT_EQ(plan.buckets[7].extents.size(), 2u);
  EXPECT_EQ(plan.buckets[7].extents[1].tensor, 2u);
}

TEST(BucketPacker, ALargeTensorStartsANewBucketWhereNoBlockFits) {
  const uint64_t bucket = 2 * kSplitAlignment;
  // 256 bytes short of a block are left.
  const std::vector tight = {bytes_tensor("a", kSplitAlignment + 1), bytes_tensor("b", 2 * bucket)};
  EXPECT_EQ(make_plan(tight, bucket).buckets[0].extents.size(), 1u);
  const std::vector exact = {bytes_tensor("a", kSplitAlignment), bytes_tensor("b", 2 * bucket)};
  EXPECT_EQ(make_plan(exact, bucket).buckets[0].extents.size(), 2u);
}

TEST(BucketPacker, UnalignedMixesStartAtMultiplesOf256) {
  const std::vector<TensorMeta> metas = {{"u", DType::kU8, {3}},
                                         {"f", DType::kF32, {5}},
                                         {"b", DType::kBf16, {7}},
                                         {"i", DType::kI64, {9}}};
  const BucketPlan plan = make_plan(metas, kMiB);
  ASSERT_EQ(plan.buckets.size(), 1u);
  const std::vector<Extent> expected = {
      {0, 0, 0, 3}, {1, 0, 256, 20}, {2, 0, 512, 14}, {3, 0, 768, 72}};
  EXPECT_EQ(plan.buckets[0].extents, expected);
  EXPECT_EQ(plan.buckets[0].used_size, 840u);
}

TEST(BucketPacker, TensorsWithoutBytesHaveOneExtent) {
  const std::vector<TensorMeta> metas = {
      {"a", DType::kF32, {0}}, {"full", DType::kU8, {kMiB}}, {"b", DType::kF32, {3, 0}}};
  expect_rules(metas, kMiB);
  const BucketPlan plan = make_plan(metas, kMiB);
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets[0].extents[2], (Extent{2, 0, kMiB, 0}));
  EXPECT_EQ(make_plan({}, kMiB).buckets.size(), 0u);
}

TEST(BucketPacker, OpensABucketOnlyForThePlacementThatNeedsIt) {
  BucketPacker packer(kMiB);
  EXPECT_EQ(packer.num_buckets(), 0u);
  EXPECT_EQ(packer.used_size(), 0u);
  packer.begin_tensor(bytes_tensor("a", kMiB));
  EXPECT_TRUE(packer.next()->opens_bucket);
  EXPECT_FALSE(packer.next().has_value());
  EXPECT_EQ(packer.num_buckets(), 1u) << "full, but open";
  EXPECT_EQ(packer.used_size(), kMiB);
  packer.begin_tensor(bytes_tensor("b", 1));
  const auto placement = packer.next();
  EXPECT_TRUE(placement->opens_bucket);
  EXPECT_TRUE(placement->completes_tensor);
  EXPECT_EQ(packer.num_tensors(), 2u);
}

TEST(BucketPacker, NothingIs32Bit) {
  for (const uint64_t bucket : {2048 * kMiB, 3072 * kMiB, 5 * kGiB}) {
    const std::vector<TensorMeta> metas = {bytes_tensor("a", 4 * kGiB + 1),
                                           {"b", DType::kF64, {uint64_t{1} << 31, 3}},
                                           bytes_tensor("c", 3072 * kMiB - 1),
                                           bytes_tensor("d", 7)};
    expect_rules(metas, bucket);
    EXPECT_EQ(make_plan(metas, bucket).payload_size, 55 * kGiB + 7);
  }
  expect_rules(std::vector{bytes_tensor("huge", kMaxTensorSize)}, kMaxBucketSize);
}

uint64_t header_bound(const BucketHeader& header) {
  uint64_t bound = 8 + 1024 + 32 * header.extents.size() + 16 * header.digests.size();
  for (const TensorMeta& meta : header.metas) {
    bound += 80 + meta.name.size() + 8 * meta.shape.size();
  }
  return bound;
}

TEST(BucketPacker, TenThousandTinyTensorsFillFewBuckets) {
  std::vector<TensorMeta> metas;
  for (int i = 0; i < 10'000; ++i) metas.push_back(bytes_tensor("layer." + std::to_string(i), 17));
  expect_rules(metas, 64 * kMiB);
  const auto headers = make_headers(metas, 64 * kMiB, true, true);
  EXPECT_EQ(headers.size(), 2u);
  for (const BucketHeader& header : headers) EXPECT_LE(header_bound(header), kMaxHeaderSize);
}

TEST(BucketPacker, ClosesABucketBeforeItsHeaderOutgrowsItsLimit) {
  std::vector<TensorMeta> metas;
  for (int i = 0; i < 300; ++i) {
    std::string name = std::to_string(i);
    name.resize(kMaxNameSize, 'x');
    metas.push_back({name, DType::kU8, std::vector<uint64_t>(kMaxDimensions, 1)});
  }
  expect_rules(metas, 64 * kMiB);
  const auto headers = make_headers(metas, 64 * kMiB, true, true);
  EXPECT_EQ(headers.size(), 5u);
  for (const BucketHeader& header : headers) EXPECT_LE(header_bound(header), kMaxHeaderSize);
}

}  // namespace
}  // namespace weightcast
