#include "weightcast/pipeline/slot_ring.h"

#include <thread>

#include <gtest/gtest.h>

#include "loopback_store.h"
#include "weightcast/backends/host/host_device.h"

namespace weightcast {
namespace {

using testing::LoopbackStore;

constexpr uint64_t kRingBucketSize = 64 * 1024;
const Duration kShort{20};
const Duration kLong{30'000};

class SlotRingTest : public ::testing::Test {
 protected:
  LoopbackStore store_{2, kRingBucketSize};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<SlotRing> ring_ = *SlotRing::create(store_, *device_, kRingBucketSize);
};

TEST_F(SlotRingTest, AcquiresSlotsInTurnAndBlocksWhileEveryOneIsInFlight) {
  for (const size_t slot : {0u, 1u}) {
    const auto bucket = ring_->acquire(Deadline::after(kLong));
    ASSERT_TRUE(bucket);
    EXPECT_EQ((*bucket)->slot, slot);
    ring_->hand_over();
  }
  const auto none = ring_->acquire(Deadline::after(kShort));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kDeadline);

  EXPECT_EQ(ring_->next_packed()->slot, 0u);
  ring_->mark_moved();
  const auto first_again = ring_->acquire(Deadline::after(kLong));
  ASSERT_TRUE(first_again);
  EXPECT_EQ((*first_again)->slot, 0u);
}

TEST_F(SlotRingTest, WaitsForReadersOfAMovedSlot) {
  ASSERT_TRUE(ring_->acquire(Deadline::after(kLong)));
  ring_->hand_over();
  const PackedBucket* bucket = ring_->next_packed();
  ASSERT_TRUE(store_.publish(bucket->slot, bucket->header));
  ring_->mark_moved();
  ASSERT_TRUE(ring_->acquire(Deadline::after(kLong)));
  ring_->hand_over();
  ring_->next_packed();
  ring_->mark_moved();
  EXPECT_FALSE(ring_->acquire(Deadline::after(kShort)));
  ASSERT_TRUE(store_.release(1));
  EXPECT_TRUE(ring_->acquire(Deadline::after(kLong)));
}

TEST_F(SlotRingTest, GivesTheCallerTheErrorOfTheCommunicationThread) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ring_->acquire(Deadline::after(kLong)));
    ring_->hand_over();
  }
  std::jthread comm_thread([this] {
    ring_->next_packed();
    ring_->fail(Error(Code::kInternal, "broadcast: out of order"));
  });
  const Status moved = ring_->wait_moved(Deadline::after(kLong));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().message(), "broadcast: out of order");
}

TEST_F(SlotRingTest, EndsTheCommunicationThreadsWaitWhenItIsClosed) {
  PackedBucket* seen = nullptr;
  std::jthread comm_thread([&] { seen = ring_->next_packed(); });
  ring_->close();
  comm_thread.join();
  EXPECT_EQ(seen, nullptr);
}

}  // namespace
}  // namespace weightcast
