// That the adversary bites: code that does not wait gets wrong bytes, on every seed. A stream holds
// its first piece of work back until somebody waits for it, so nothing here depends on time.
#include <array>
#include <chrono>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "pattern.h"
#include "weightcast/backends/host/host_device.h"

namespace weightcast {
namespace {

using testing::fill_pattern;
using testing::first_difference;

constexpr size_t kQueuedSize = 70'001;
constexpr uint64_t kNumSeeds = 50;

Deadline queued_soon() { return Deadline::after(std::chrono::seconds(60)); }
Deadline past() { return Deadline::after(std::chrono::seconds(-1)); }

class QueuedHostDeviceTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  QueuedHostDeviceTest() { fill_pattern(source_, 1, 1); }

  // Before the streams, which work on these bytes until they are gone.
  std::vector<std::byte> source_ = std::vector<std::byte>(kQueuedSize);
  std::vector<std::byte> between_ = std::vector<std::byte>(kQueuedSize);
  std::vector<std::byte> destination_ = std::vector<std::byte>(kQueuedSize);
  std::unique_ptr<Device> device_ = make_queued_host_device(GetParam());
  std::unique_ptr<Stream> stream_ = *device_->create_stream();
  std::unique_ptr<Event> event_ = *device_->create_event();
};

TEST_P(QueuedHostDeviceTest, GivesTheWrongBytesToACallerWhoReusesTheSourceTooEarly) {
  ASSERT_TRUE(stream_->copy({.destination = destination_, .source = source_}));
  ASSERT_TRUE(stream_->record(*event_));
  fill_pattern(source_, 2, 1);
  ASSERT_TRUE(event_->wait(queued_soon()));
  EXPECT_EQ(first_difference(destination_, 2, 1), kQueuedSize);
}

TEST_P(QueuedHostDeviceTest, GivesTheOldBytesToACallerWhoReadsTheDestinationTooEarly) {
  fill_pattern(destination_, 9, 1);
  std::vector<uint64_t> digests(num_digest_blocks(kQueuedSize), 7);
  ASSERT_TRUE(stream_->copy({destination_, source_, Conversion::kNone, digests}));
  EXPECT_EQ(first_difference(destination_, 9, 1), kQueuedSize);
  EXPECT_EQ(digests, std::vector<uint64_t>(digests.size(), 7));
  ASSERT_TRUE(stream_->synchronize(queued_soon()));
  EXPECT_EQ(first_difference(destination_, 1, 1), kQueuedSize);
}

TEST_P(QueuedHostDeviceTest, GivesTheOldBytesToAStreamThatDoesNotWaitForAnother) {
  const auto other = *device_->create_stream();
  fill_pattern(between_, 9, 1);
  ASSERT_TRUE(stream_->copy({.destination = between_, .source = source_}));
  ASSERT_TRUE(other->copy({.destination = destination_, .source = between_}));
  ASSERT_TRUE(other->synchronize(queued_soon()));
  EXPECT_EQ(first_difference(destination_, 9, 1), kQueuedSize);
}

TEST_P(QueuedHostDeviceTest, ReportsWorkThatIsNotDoneByTheDeadline) {
  ASSERT_TRUE(stream_->copy({.destination = destination_, .source = source_}));
  ASSERT_TRUE(stream_->record(*event_));
  const Status late = event_->wait(past());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDeadline);
  ASSERT_TRUE(event_->wait(queued_soon()));
  EXPECT_TRUE(event_->wait(past()));
  EXPECT_EQ(first_difference(destination_, 1, 1), kQueuedSize);

  const auto other = *device_->create_stream();
  ASSERT_TRUE(other->copy({.destination = destination_, .source = source_}));
  const Status unfinished = other->synchronize(past());
  ASSERT_FALSE(unfinished);
  EXPECT_EQ(unfinished.error().code(), Code::kDeadline);
}

TEST_P(QueuedHostDeviceTest, ForgetsTheEarlierMarkOfAnEventThatIsRecordedAgain) {
  const auto idle = *device_->create_stream();
  fill_pattern(destination_, 9, 1);
  ASSERT_TRUE(stream_->copy({.destination = destination_, .source = source_}));
  ASSERT_TRUE(stream_->record(*event_));
  ASSERT_TRUE(idle->record(*event_));
  EXPECT_TRUE(event_->wait(past()));
  EXPECT_EQ(first_difference(destination_, 9, 1), kQueuedSize);
}

TEST_P(QueuedHostDeviceTest, WaitsForAnEventAsItWasRecordedWhenAsked) {
  const auto other = *device_->create_stream();
  const auto idle = *device_->create_stream();
  ASSERT_TRUE(stream_->copy({.destination = between_, .source = source_}));
  ASSERT_TRUE(stream_->record(*event_));
  ASSERT_TRUE(other->wait(*event_));
  ASSERT_TRUE(idle->record(*event_));
  ASSERT_TRUE(other->copy({.destination = destination_, .source = between_}));
  ASSERT_TRUE(other->synchronize(queued_soon()));
  EXPECT_EQ(first_difference(destination_, 1, 1), kQueuedSize);
}

TEST_P(QueuedHostDeviceTest, MarksOnlyTheWorkThatWasEnqueuedBefore) {
  ASSERT_TRUE(stream_->record(*event_));
  ASSERT_TRUE(stream_->copy({.destination = destination_, .source = source_}));
  EXPECT_TRUE(event_->wait(past()));
  EXPECT_EQ(destination_, std::vector<std::byte>(kQueuedSize));
}

TEST_P(QueuedHostDeviceTest, EndsItsStreamsInAnyOrder) {
  auto other = *device_->create_stream();
  ASSERT_TRUE(stream_->copy({.destination = source_, .source = destination_}));
  ASSERT_TRUE(stream_->record(*event_));
  ASSERT_TRUE(other->wait(*event_));
  ASSERT_TRUE(other->copy({.destination = destination_, .source = source_}));
  (GetParam() % 2 == 0 ? other : stream_).reset();
  event_.reset();
  other.reset();
  stream_.reset();
  EXPECT_EQ(source_, std::vector<std::byte>(kQueuedSize));
  EXPECT_EQ(destination_, source_);
}

constexpr size_t kNumBuffers = 5;
using Buffers = std::array<std::vector<std::byte>, kNumBuffers>;

// Copies between buffers on three streams at random. `last_use[b]` is recorded after each use of
// buffer b, and whoever uses it next waits for that.
Buffers run_program(Device& device, uint64_t seed) {
  Buffers buffers;
  std::vector<std::unique_ptr<Event>> last_use;
  for (size_t b = 0; b < kNumBuffers; ++b) {
    buffers[b].resize(3000);
    fill_pattern(buffers[b], 1, b);
    last_use.push_back(*device.create_event());
  }
  std::vector<std::unique_ptr<Stream>> streams;
  for (int s = 0; s < 3; ++s) streams.push_back(*device.create_stream());
  std::mt19937_64 random(seed);
  for (int step = 0; step < 60; ++step) {
    Stream& stream = *streams[random() % streams.size()];
    const size_t from = random() % kNumBuffers;
    const size_t to = (from + 1 + random() % (kNumBuffers - 1)) % kNumBuffers;
    const size_t size = random() % 1500;
    const MemoryView destination = MemoryView(buffers[to]).subspan(random() % 1500, size);
    for (const size_t used : {from, to}) EXPECT_TRUE(stream.wait(*last_use[used]));
    EXPECT_TRUE(stream.copy(
        {.destination = destination, .source = ConstMemoryView(buffers[from]).first(size)}));
    for (const size_t used : {from, to}) EXPECT_TRUE(stream.record(*last_use[used]));
  }
  for (const auto& event : last_use) EXPECT_TRUE(event->wait(queued_soon()));
  return buffers;
}

TEST_P(QueuedHostDeviceTest, DoesWhatTheInlineDeviceDoesWhenEverythingIsWaitedFor) {
  const auto inline_device = make_host_device();
  EXPECT_EQ(run_program(*device_, GetParam()), run_program(*inline_device, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueuedHostDeviceTest, ::testing::Range(uint64_t{0}, kNumSeeds));

}  // namespace
}  // namespace weightcast
