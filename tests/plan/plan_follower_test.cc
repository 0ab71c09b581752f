#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_cases.h"
#include "weightcast/base/size.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {
namespace {

using testing::bytes_tensor;
using ::testing::HasSubstr;
using testing::make_headers;
using testing::random_metas;

constexpr uint64_t kBucket = 256 * kKiB;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

struct Mode {
  bool announced;
  bool digests;
};
constexpr Mode kModes[] = {{false, false}, {false, true}, {true, false}, {true, true}};

PlanFollower make_follower(const std::vector<TensorMeta>& metas, Mode mode) {
  return PlanFollower(kBucket, mode.announced ? std::optional(metas) : std::nullopt, mode.digests);
}

TEST(PlanFollower, AcceptsWhateverThePackerMakes) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const auto metas = random_metas(seed, 40, kBucket);
    const BucketPlan plan = make_plan(metas, kBucket);
    for (const Mode mode : kModes) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " announced " << mode.announced);
      PlanFollower follower = make_follower(metas, mode);
      const auto headers = make_headers(metas, kBucket, !mode.announced, mode.digests);
      for (const BucketHeader& header : headers) {
        EXPECT_FALSE(follower.finished());
        const Status status = follower.accept(header);
        ASSERT_TRUE(status.has_value()) << status.error().message();
      }
      EXPECT_TRUE(follower.finished());
      EXPECT_EQ(follower.metas(), metas);
      EXPECT_EQ(follower.num_complete(), metas.size());
      EXPECT_EQ(follower.num_buckets(), headers.size());
      EXPECT_EQ(follower.payload_size(), plan.payload_size);
    }
  }
}

TEST(PlanFollower, AVersionWithoutTensorsIsOneEmptyBucket) {
  for (const Mode mode : kModes) {
    PlanFollower follower = make_follower({}, mode);
    EXPECT_TRUE(follower.accept(BucketHeader{.last = true}).has_value());
    EXPECT_TRUE(follower.finished());
  }
}

// Every header with one field changed. A change of `last` from true to false where metas are not
// announced only means that a bucket is still to come, and none will.
std::vector<BucketHeader> mutations(const BucketHeader& header, bool announced) {
  std::vector<BucketHeader> changed;
  const auto add = [&](const std::function<void(BucketHeader&)>& change) {
    BucketHeader copy = header;
    change(copy);
    if (copy != header) changed.push_back(std::move(copy));
  };
  const auto add_numbers = [&](const std::function<uint64_t&(BucketHeader&)>& field) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, kBucket, kHuge, kHuge - 255}) {
      add([&](BucketHeader& copy) { field(copy) = value; });
    }
    for (const uint64_t delta : {uint64_t{1}, kExtentAlignment, kSplitAlignment}) {
      add([&](BucketHeader& copy) { field(copy) += delta; });
      add([&](BucketHeader& copy) { field(copy) -= delta; });
    }
  };
  add_numbers([](BucketHeader& copy) -> uint64_t& { return copy.index; });
  add_numbers([](BucketHeader& copy) -> uint64_t& { return copy.used_size; });
  if (header.index > 0) {
    add_numbers([](BucketHeader& copy) -> uint64_t& { return copy.sequence; });
  }
  if (!header.last || announced) add([](BucketHeader& copy) { copy.last = !copy.last; });
  for (size_t i = 0; i < header.extents.size(); ++i) {
    add_numbers([i](BucketHeader& copy) -> uint64_t& { return copy.extents[i].tensor; });
    add_numbers([i](BucketHeader& copy) -> uint64_t& { return copy.extents[i].tensor_offset; });
    add_numbers([i](BucketHeader& copy) -> uint64_t& { return copy.extents[i].bucket_offset; });
    add_numbers([i](BucketHeader& copy) -> uint64_t& { return copy.extents[i].size; });
    const auto at = static_cast<std::ptrdiff_t>(i);
    add([at](BucketHeader& copy) { copy.extents.erase(copy.extents.begin() + at); });
    add([at](BucketHeader& copy) {
      copy.extents.insert(copy.extents.begin() + at, copy.extents[static_cast<size_t>(at)]);
    });
  }
  for (size_t i = 0; i < header.metas.size(); ++i) {
    add([i](BucketHeader& copy) { copy.metas[i].name.clear(); });
    add([i](BucketHeader& copy) { copy.metas[i].name = "\xff"; });
    add([i](BucketHeader& copy) { copy.metas[i].dtype = DType{99}; });
    add([i](BucketHeader& copy) { copy.metas[i].shape = {kHuge, kHuge}; });
    add([i](BucketHeader& copy) { copy.metas[i].shape = {kMaxTensorSize, 1}; });
  }
  if (!header.metas.empty()) add([](BucketHeader& copy) { copy.metas.pop_back(); });
  if (!header.digests.empty()) add([](BucketHeader& copy) { copy.digests.pop_back(); });
  add([](BucketHeader& copy) { copy.metas.push_back({"another", DType::kU8, {1}}); });
  add([](BucketHeader& copy) { copy.digests.emplace_back(); });
  return changed;
}

// A bucket that ends early is only known for one when the next begins, and a `last` that comes too
// early when more comes: whatever was changed, the version as sent must not pass.
bool version_passes(PlanFollower follower, std::span<const BucketHeader> headers,
                    const BucketHeader& changed, size_t at) {
  for (size_t i = 0; i < headers.size(); ++i) {
    if (!follower.accept(i == at ? changed : headers[i])) return false;
  }
  return true;
}

TEST(PlanFollower, RejectsEveryChangeOfOneField) {
  size_t num_changes = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto metas = random_metas(seed, 12, kBucket);
    for (const Mode mode : kModes) {
      const auto headers = make_headers(metas, kBucket, !mode.announced, mode.digests);
      for (size_t at = 0; at < headers.size(); ++at) {
        for (const BucketHeader& changed : mutations(headers[at], mode.announced)) {
          ++num_changes;
          EXPECT_FALSE(version_passes(make_follower(metas, mode), headers, changed, at))
              << "seed " << seed << " bucket " << at << " of " << headers.size() << " change "
              << num_changes;
        }
      }
    }
  }
  EXPECT_GT(num_changes, 5000u);
}

TEST(PlanFollower, RefusesBucketsLostRepeatedOrSwapped) {
  const auto metas = random_metas(9, 30, kBucket);
  const auto headers = make_headers(metas, kBucket, true, true);
  ASSERT_GE(headers.size(), 3u);
  PlanFollower lost = make_follower(metas, {false, true});
  EXPECT_FALSE(lost.accept(headers[1]).has_value());
  PlanFollower repeated = make_follower(metas, {false, true});
  EXPECT_TRUE(repeated.accept(headers[0]).has_value());
  const Status status = repeated.accept(headers[0]);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::kCorruption);
  EXPECT_THAT(status.error().message(), HasSubstr("bucket 0: bucket 1 was due"));
}

TEST(PlanFollower, RefusesWhatComesAfterTheLastBucket) {
  const std::vector metas = {bytes_tensor("a", 10)};
  auto headers = make_headers(metas, kBucket, true, false);
  PlanFollower follower = make_follower(metas, {false, false});
  EXPECT_TRUE(follower.accept(headers[0]).has_value());
  headers[0].index = 1;
  EXPECT_FALSE(follower.accept(headers[0]).has_value());
}

TEST(PlanFollower, NoticesANameThatComesTwiceInTheVersion) {
  // Two buckets, since each tensor fills one.
  const std::vector metas = {bytes_tensor("same", kBucket), bytes_tensor("same", kBucket)};
  const auto headers = make_headers(metas, kBucket, true, false);
  ASSERT_EQ(headers.size(), 2u);
  PlanFollower follower = make_follower(metas, {false, false});
  EXPECT_TRUE(follower.accept(headers[0]).has_value());
  const Status status = follower.accept(headers[1]);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message(), HasSubstr("bucket 1: tensor same comes twice"));
  PlanFollower announced = make_follower(metas, {true, false});
  EXPECT_FALSE(announced.accept(make_headers(metas, kBucket, false, false)[0]).has_value());
}

TEST(PlanFollower, RefusesAnnouncedMetasThatAreInvalid) {
  const std::vector good = {bytes_tensor("a", 10)};
  const auto headers = make_headers(good, kBucket, false, false);
  PlanFollower follower(kBucket, std::vector<TensorMeta>{{"a", DType::kU8, {kHuge, 2}}}, false);
  const Status status = follower.accept(headers[0]);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::kCorruption);
}

TEST(PlanFollower, NamesTheTensorWhoseExtentIsWrong) {
  const std::vector metas = {bytes_tensor("first", 10), bytes_tensor("second", 20)};
  auto headers = make_headers(metas, kBucket, true, false);
  headers[0].extents[1].bucket_offset = 0;
  PlanFollower follower = make_follower(metas, {false, false});
  const Status status = follower.accept(headers[0]);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message(), HasSubstr("tensor second"));
}

}  // namespace
}  // namespace weightcast
