#include "weightcast/handoff/publisher.h"

#include <array>
#include <csignal>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.h"

namespace weightcast::testing {
namespace {

using ::testing::MatchesRegex;

constexpr SegmentGeometry kTwoSlots{.epoch = 1, .bucket_size = kMinBucketSize, .num_slots = 2};

class PublisherWithReaders : public ::testing::TestWithParam<std::tuple<int, uint64_t>> {};

TEST_P(PublisherWithReaders, EveryReaderGetsEveryByteOfThousandsOfBuckets) {
  const auto [num_readers, num_slots] = GetParam();
  const uint64_t count = 2000;
  const SegmentGeometry geometry{.epoch = 3, .bucket_size = kMinBucketSize, .num_slots = num_slots};
  const std::vector<Stage::Read> readers(static_cast<size_t>(num_readers),
                                         read_in_order(geometry, count));
  Stage stage(geometry, readers);
  for (uint64_t number = 1; number <= count; ++number) {
    const auto published = stage.publish(number);
    ASSERT_TRUE(published) << published.error().message();
  }
  for (int rank = 1; rank <= num_readers; ++rank) EXPECT_EQ(stage.reader(rank).report(), "");
  EXPECT_EQ(stage.group().num_progress(), count - num_slots);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PublisherWithReaders,
                         ::testing::Values(std::tuple{1, 1}, std::tuple{1, 2}, std::tuple{2, 3},
                                           std::tuple{4, 2}, std::tuple{4, 16}));

TEST(Publisher, ReadersMayReleaseInAnyOrder) {
  const SegmentGeometry geometry{.epoch = 1, .bucket_size = kMinBucketSize, .num_slots = 4};
  const uint64_t rounds = 100;
  const auto read = [&](Consumer& consumer, FakeGroup&) -> std::string {
    for (uint64_t round = 0; round < rounds; ++round) {
      std::vector<FilledBucket> held;
      for (uint64_t i = 0; i < geometry.num_slots; ++i) {
        held.push_back(consumer.next(soon()).value());
      }
      // A rotated, reversed order, another one each round.
      for (uint64_t i = 0; i < geometry.num_slots; ++i) {
        const FilledBucket& bucket = held[(round + geometry.num_slots - i) % geometry.num_slots];
        const uint64_t index = (round + geometry.num_slots - i) % geometry.num_slots;
        const std::string wrong = inspect(bucket, geometry, round * geometry.num_slots + index + 1);
        if (!wrong.empty()) return wrong;
        if (!consumer.release(bucket.number)) return "release";
      }
    }
    return "";
  };
  Stage stage(geometry, {read, read_in_order(geometry, rounds * geometry.num_slots)});
  for (uint64_t number = 1; number <= rounds * geometry.num_slots; ++number) {
    ASSERT_TRUE(stage.publish(number));
  }
  EXPECT_EQ(stage.reader(1).report(), "");
  EXPECT_EQ(stage.reader(2).report(), "");
}

// A reader that holds what it gets until `gate` is signalled, then reads on up to `count`.
Stage::Read read_after(const EventFd& gate, const SegmentGeometry& geometry, uint64_t count) {
  return [&gate, geometry, count](Consumer& consumer, FakeGroup&) -> std::string {
    const auto first = consumer.next(soon());
    if (!first) return first.error().message();
    const std::array<int, 1> fds{gate.fd()};
    if (!wait_readable(fds, soon())) return "the gate stayed shut";
    std::string wrong = inspect(*first, geometry, 1);
    if (!wrong.empty() || !consumer.release(1)) return "first bucket " + wrong;
    for (uint64_t number = 2; number <= count; ++number) {
      const auto bucket = consumer.next(soon());
      if (!bucket) return bucket.error().message();
      wrong = inspect(*bucket, geometry, number);
      if (!wrong.empty() || !consumer.release(number)) return "bucket " + wrong;
    }
    return "";
  };
}

TEST(Publisher, ASlowReaderHoldsItBackAndIsNamedAtTheDeadline) {
  const EventFd gate = EventFd::create().value();
  Stage stage(kTwoSlots, {read_in_order(kTwoSlots, 6), read_after(gate, kTwoSlots, 6)});
  ASSERT_TRUE(stage.publish(1));
  ASSERT_TRUE(stage.publish(2));
  const auto status = stage.publisher().wait_free(0, shortly());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kDeadline);
  EXPECT_THAT(status.error().message(),
              MatchesRegex("rank 2 has not released slot 0 for [0-9.]+ m?s"));
  gate.signal();
  for (uint64_t number = 3; number <= 6; ++number) ASSERT_TRUE(stage.publish(number));
  EXPECT_EQ(stage.reader(1).report(), "");
  EXPECT_EQ(stage.reader(2).report(), "");
}

TEST(Publisher, AReaderKilledWithALeaseEndsTheWaitByTheFailureOfTheGroup) {
  const EventFd never = EventFd::create().value();
  Stage stage(kTwoSlots, {read_after(never, kTwoSlots, 3)});
  ASSERT_TRUE(stage.publish(1));
  ASSERT_TRUE(stage.publish(2));
  // The group's control thread watches the link; here a thread stands in for it.
  const std::jthread watcher([&] {
    const std::array<int, 1> fds{stage.link(1).get()};
    if (wait_readable(fds, soon())) stage.group().abort(Error(Code::kPeerLost, "rank 1 is lost"));
  });
  stage.reader(1).signal(SIGKILL);
  const auto status = stage.publisher().wait_free(0, soon());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kPeerLost);
  EXPECT_EQ(status.error().message(), "rank 1 is lost");
  EXPECT_EQ(stage.reader(1).report(), "died of signal 9");
}

TEST(Publisher, AStoppedReaderThatGoesOnIsToldThatItsGroupFailed) {
  const EventFd gate = EventFd::create().value();
  Stage stage(kTwoSlots, {[&](Consumer& consumer, FakeGroup& group) -> std::string {
                const auto bucket = consumer.next(soon());
                if (!bucket) return bucket.error().message();
                const std::array<int, 1> fds{gate.fd()};
                if (!wait_readable(fds, soon())) return "the gate stayed shut";
                group.abort(Error(Code::kPeerLost, "given up"));
                // The slots are its own for good: nobody has written into what it holds.
                const std::string wrong = inspect(*bucket, kTwoSlots, 1);
                if (!wrong.empty()) return wrong;
                const auto released = consumer.release(1);
                return released ? "released a void lease" : released.error().message();
              }});
  ASSERT_TRUE(stage.publish(1));
  stage.reader(1).signal(SIGSTOP);
  stage.group().abort(Error(Code::kPeerLost, "rank 1 is lost"));
  EXPECT_FALSE(stage.publisher().wait_free(0, soon()));
  gate.signal();
  stage.reader(1).signal(SIGCONT);
  EXPECT_EQ(stage.reader(1).report(), "given up");
}

TEST(Publisher, AReaderCanNotWriteToTheSegment) {
  FakeGroup group;
  const auto publisher = Publisher::create(kTwoSlots, group).value();
  const auto [ours, theirs] = make_link();
  ASSERT_TRUE(publisher->add_reader(ours, 1));
  const LinkMessage offer = receive_message(theirs, -1, soon()).value();
  const int memory = offer.fds.at(0).get();
  const size_t size = segment_size(kTwoSlots);
  EXPECT_EQ(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  void* readable = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, memory, 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_NE(::mprotect(readable, size, PROT_READ | PROT_WRITE), 0);
  ::munmap(readable, size);
  const char byte = 1;
  EXPECT_LT(::pwrite(memory, &byte, 1, 0), 0);
  EXPECT_NE(::ftruncate(memory, 0), 0);
  EXPECT_NE(::fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  // Its own release words it can write, but not take away from under the publisher.
  EXPECT_NE(::ftruncate(offer.fds.at(1).get(), 0), 0);
}

TEST(Publisher, AReaderThatReleasesWhatItNeverGotIsCorruption) {
  FakeGroup group;
  const auto publisher = Publisher::create(kTwoSlots, group).value();
  const auto [ours, theirs] = make_link();
  ASSERT_TRUE(publisher->add_reader(ours, 7));
  const LinkMessage offer = receive_message(theirs, -1, soon()).value();
  const auto memory = Mapping::map(offer.fds.at(1), sizeof(ReleaseWords), Access::kReadWrite);
  ASSERT_TRUE(publish_bucket(*publisher, kTwoSlots, 1));
  reinterpret_cast<ReleaseWords*>(memory->data())->released[0].number = 99;
  const auto status = publisher->wait_free(0, soon());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kCorruption);
  EXPECT_EQ(status.error().rank(), 7);
}

TEST(Publisher, WithoutReadersEverySlotIsFree) {
  FakeGroup group;
  const auto publisher = Publisher::create(kTwoSlots, group).value();
  EXPECT_EQ(publisher->num_slots(), 2u);
  for (uint64_t number = 1; number <= 5; ++number) {
    ASSERT_TRUE(publish_bucket(*publisher, kTwoSlots, number));
  }
}

TEST(Publisher, NothingLeaksOverTwoHundredLives) {
  FakeGroup group;
  const auto live = [&] {
    const auto publisher = Publisher::create(kTwoSlots, group).value();
    const auto [ours, theirs] = make_link();
    ASSERT_TRUE(publisher->add_reader(ours, 1));
    const auto consumer = Consumer::attach(theirs, kTwoSlots, group, soon());
    ASSERT_TRUE(consumer);
    ASSERT_TRUE(publish_bucket(*publisher, kTwoSlots, 1));
    ASSERT_TRUE((*consumer)->next(soon()));
  };
  live();
  const size_t fds = num_open_fds();
  EXPECT_EQ(num_mappings(), 0u);
  for (int i = 0; i < 200; ++i) live();
  EXPECT_EQ(num_open_fds(), fds);
  EXPECT_EQ(num_mappings(), 0u);
}

TEST(Publisher, AfterTheFirstVersionNoPageFaults) {
  const SegmentGeometry geometry{.epoch = 1, .bucket_size = 4u << 20, .num_slots = 4};
  FakeGroup group;
  const auto publisher = Publisher::create(geometry, group).value();
  const auto [ours, theirs] = make_link();
  ASSERT_TRUE(publisher->add_reader(ours, 1));
  const auto consumer = Consumer::attach(theirs, geometry, group, soon()).value();
  uint64_t number = 0;
  uint64_t sum = 0;
  const auto move_version = [&] {
    for (int i = 0; i < 16; ++i) {
      const size_t slot = slot_of(geometry, ++number);
      ASSERT_TRUE(publisher->wait_free(slot, soon()));
      ASSERT_TRUE(publisher->make_resident(slot, geometry.bucket_size));
      std::ranges::fill(publisher->payload(slot), std::byte{7});
      ASSERT_TRUE(publisher->publish(slot, make_header(number - 1, geometry.bucket_size)));
      const auto bucket = consumer->next(soon());
      ASSERT_TRUE(bucket);
      for (size_t at = 0; at < bucket->payload.size(); at += 512) {
        sum += std::to_integer<uint64_t>(bucket->payload[at]);
      }
      ASSERT_TRUE(consumer->release(number));
    }
  };
  move_version();
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 4; ++i) move_version();
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(sum, 7 * 5 * 16 * (geometry.bucket_size / 512));
  // 256 MiB moved; 1000 a GiB are allowed.
  EXPECT_LE(after.ru_minflt - before.ru_minflt, 250);
}

}  // namespace
}  // namespace weightcast::testing
