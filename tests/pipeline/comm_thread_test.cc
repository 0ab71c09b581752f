#include "weightcast/pipeline/comm_thread.h"

#include <thread>

#include <gtest/gtest.h>

#include "loopback_store.h"
#include "weightcast/backends/host/host_device.h"

namespace weightcast {
namespace {

using testing::LoopbackStore;

constexpr uint64_t kBucketSize = 64 * 1024;

// Remembers which threads used it, and fails at a given broadcast.
class WatchedCommunicator final : public Communicator {
 public:
  struct Seen {
    std::thread::id created, destroyed;
    std::vector<std::thread::id> broadcast;
    std::vector<uint64_t> sizes;
  };
  WatchedCommunicator(Seen& seen, size_t fail_at) : seen_(seen), fail_at_(fail_at) {
    seen_.created = std::this_thread::get_id();
  }
  ~WatchedCommunicator() override { seen_.destroyed = std::this_thread::get_id(); }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  Status broadcast(MemoryView bytes, int, Stream&, Deadline) override {
    seen_.broadcast.push_back(std::this_thread::get_id());
    seen_.sizes.push_back(bytes.size());
    if (seen_.broadcast.size() == fail_at_) return Error(Code::kInternal, "broadcast: no route");
    return {};
  }
  Status poll_error() override { return {}; }
  void abort() noexcept override {}
  uint64_t bytes_on_wire() const override { return 0; }

 private:
  Seen& seen_;
  size_t fail_at_;
};

class CommThreadTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<CommThread>> start(size_t fail_at = 0) {
    CommThread::Config config;
    config.create_communicator = [this, fail_at](const CommConfig&,
                                                 Device&) -> Result<std::unique_ptr<Communicator>> {
      return std::unique_ptr<Communicator>(new WatchedCommunicator(seen_, fail_at));
    };
    return CommThread::start(std::move(config), *device_, *ring_, store_);
  }
  void send(uint64_t used_size) {
    const auto bucket = ring_->acquire(Deadline::after(Duration(30'000)));
    ASSERT_TRUE(bucket);
    (*bucket)->header.used_size = used_size;
    ring_->hand_over();
  }

  WatchedCommunicator::Seen seen_;
  LoopbackStore store_{4, kBucketSize};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<SlotRing> ring_ = *SlotRing::create(store_, *device_, kBucketSize);
};

TEST_F(CommThreadTest, CreatesUsesAndDestroysTheCommunicatorOnOneThreadOfItsOwn) {
  auto thread = *start();
  for (const uint64_t size : {100u, 200u, 300u}) send(size);
  ASSERT_TRUE(ring_->wait_moved(Deadline::after(Duration(30'000))));
  thread.reset();
  EXPECT_NE(seen_.created, std::this_thread::get_id());
  EXPECT_EQ(seen_.destroyed, seen_.created);
  EXPECT_EQ(seen_.broadcast, std::vector(3, seen_.created));
}

TEST_F(CommThreadTest, BroadcastsOnlyTheUsedLengthOfEachBucketInOrder) {
  const auto thread = *start();
  for (const uint64_t size : {100u, 7u, 0u}) send(size);
  ASSERT_TRUE(ring_->wait_moved(Deadline::after(Duration(30'000))));
  EXPECT_EQ(seen_.sizes, (std::vector<uint64_t>{100, 7, 0}));
}

TEST_F(CommThreadTest, HandsTheCommunicatorsErrorToTheCallerAndPublishesNothingMore) {
  const auto thread = *start(2);
  for (int i = 0; i < 3; ++i) send(10);
  const Status moved = ring_->wait_moved(Deadline::after(Duration(30'000)));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().message(), "broadcast: no route");
  EXPECT_TRUE(store_.next(Deadline::after(Duration(30'000))));
  EXPECT_FALSE(store_.next(Deadline::after(Duration(0))));
}

TEST_F(CommThreadTest, ReportsACommunicatorThatCanNotBeMade) {
  CommThread::Config config;
  config.create_communicator = [](const CommConfig&,
                                  Device&) -> Result<std::unique_ptr<Communicator>> {
    return Error(Code::kUnsupported, "no such fabric");
  };
  const auto thread = CommThread::start(std::move(config), *device_, *ring_, store_);
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().message(), "no such fabric");
}

}  // namespace
}  // namespace weightcast
