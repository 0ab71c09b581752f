#include "weightcast/handoff/consumer.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.h"
#include "weightcast/base/check.h"

namespace weightcast::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr SegmentGeometry kThreeSlots{.epoch = 1, .bucket_size = kMinBucketSize, .num_slots = 3};

// A publisher and its only reader, both in this process.
class ConsumerTest : public ::testing::Test {
 protected:
  ConsumerTest() : publisher_(Publisher::create(kThreeSlots, group_).value()) {
    const auto [ours, theirs] = make_link();
    WEIGHTCAST_CHECK(publisher_->add_reader(ours, 1).has_value());
    consumer_ = Consumer::attach(theirs, kThreeSlots, group_, soon()).value();
  }

  void publish(uint64_t number) {
    const auto published = publish_bucket(*publisher_, kThreeSlots, number);
    ASSERT_TRUE(published) << published.error().message();
  }

  FakeGroup group_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Consumer> consumer_;
};

TEST_F(ConsumerTest, YieldsBucketsWhereTheyLie) {
  publish(1);
  const auto bucket = consumer_->next(soon());
  ASSERT_TRUE(bucket);
  EXPECT_EQ(inspect(*bucket, kThreeSlots, 1), "");
  // Another mapping of the same pages: what the publisher writes now is seen.
  publisher_->payload(0)[0] ^= std::byte{1};
  EXPECT_NE(inspect(*bucket, kThreeSlots, 1), "");
  EXPECT_EQ(group_.num_progress(), 1u);
}

TEST_F(ConsumerTest, HoldingEverySlotAndAskingForMoreIsRefusedAtOnce) {
  EXPECT_EQ(consumer_->num_slots(), 3u);
  for (uint64_t number = 1; number <= 3; ++number) {
    publish(number);
    ASSERT_TRUE(consumer_->next(soon()));
  }
  const auto start = Clock::now();
  const auto more = consumer_->next(soon());
  EXPECT_LT(seconds_between(start, Clock::now()), 30);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(more.error().message(), HasSubstr("bucket 1 is still held"));
  // Giving it back heals.
  ASSERT_TRUE(consumer_->release(1));
  publish(4);
  EXPECT_EQ(inspect(consumer_->next(soon()).value(), kThreeSlots, 4), "");
}

TEST_F(ConsumerTest, HoldingJustTheSlotThatComesNextIsRefusedToo) {
  for (uint64_t number = 1; number <= 3; ++number) {
    publish(number);
    ASSERT_TRUE(consumer_->next(soon()));
  }
  ASSERT_TRUE(consumer_->release(3));
  ASSERT_TRUE(consumer_->release(2));
  const auto more = consumer_->next(soon());
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Code::kInvalidArgument);
}

TEST_F(ConsumerTest, ReleasingWhatIsNotHeldIsRefusedAndChangesNothing) {
  publish(1);
  ASSERT_TRUE(consumer_->next(soon()));
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{2}, uint64_t{4}, UINT64_MAX}) {
    const auto status = consumer_->release(wrong);
    ASSERT_FALSE(status) << wrong;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(publisher_->wait_free(0, shortly()));
  EXPECT_TRUE(consumer_->release(1));
  EXPECT_FALSE(consumer_->release(1));
  EXPECT_TRUE(publisher_->wait_free(0, soon()));
}

TEST_F(ConsumerTest, NoBucketInTimeIsADeadline) {
  const auto bucket = consumer_->next(shortly());
  ASSERT_FALSE(bucket);
  EXPECT_EQ(bucket.error().code(), Code::kDeadline);
  EXPECT_THAT(bucket.error().message(), MatchesRegex("bucket 1 has not arrived for [0-9.]+ m?s"));
  // The wait left no trace: the next one ends when the bucket comes.
  publish(1);
  EXPECT_TRUE(consumer_->next(soon()));
}

TEST_F(ConsumerTest, AFailureOfTheGroupEndsEveryWait) {
  std::jthread failing([&] { group_.abort(Error(Code::kBadInput, "disk full on rank 3")); });
  const auto bucket = consumer_->next(soon());
  ASSERT_FALSE(bucket);
  EXPECT_EQ(bucket.error().message(), "disk full on rank 3");
  const auto free = publisher_->wait_free(0, soon());
  ASSERT_FALSE(free);
  EXPECT_EQ(free.error().code(), Code::kBadInput);
}

TEST_F(ConsumerTest, ReleaseAfterAFailureSaysThatTheLeaseIsVoid) {
  publish(1);
  ASSERT_TRUE(consumer_->next(soon()));
  group_.abort(Error(Code::kPeerLost, "rank 2 is lost"));
  const auto status = consumer_->release(1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message(), "rank 2 is lost");
}

TEST_F(ConsumerTest, BucketsOutliveThePublisherWhileTheyAreHeld) {
  publish(1);
  const auto bucket = consumer_->next(soon());
  publisher_.reset();
  EXPECT_EQ(inspect(*bucket, kThreeSlots, 1), "");
}

TEST_F(ConsumerTest, AnEmptyBucketArrivesToo) {
  ASSERT_TRUE(publisher_->publish(0, make_header(0, 0)));
  const auto bucket = consumer_->next(soon());
  ASSERT_TRUE(bucket) << bucket.error().message();
  EXPECT_TRUE(bucket->payload.empty());
  EXPECT_TRUE(consumer_->release(1));
}

TEST(Consumer, AFailureOfTheGroupEndsAttaching) {
  FakeGroup group;
  group.abort(Error(Code::kRefused, "no"));
  const auto [ours, theirs] = make_link();
  const auto consumer = Consumer::attach(theirs, kThreeSlots, group, soon());
  ASSERT_FALSE(consumer);
  EXPECT_EQ(consumer.error().code(), Code::kRefused);
}

TEST(Consumer, APublisherThatHangsUpIsLost) {
  FakeGroup group;
  auto [ours, theirs] = make_link();
  ours.reset();
  const auto consumer = Consumer::attach(theirs, kThreeSlots, group, soon());
  ASSERT_FALSE(consumer);
  EXPECT_EQ(consumer.error().code(), Code::kPeerLost);
}

}  // namespace
}  // namespace weightcast::testing
