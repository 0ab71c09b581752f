// A publisher that breaks the rules: nothing it writes or offers may crash a reader.
#include <array>
#include <cstring>
#include <memory>
#include <random>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "stage.h"
#include "weightcast/base/mapping.h"
#include "weightcast/control/wire.h"

namespace weightcast::testing {
namespace {

constexpr SegmentGeometry kGeometry{.epoch = 5, .bucket_size = kMinBucketSize, .num_slots = 2};
constexpr int kSize = F_SEAL_GROW | F_SEAL_SHRINK;
constexpr int kFutureWrite = 0x0010;  // F_SEAL_FUTURE_WRITE

Fd make_memory(size_t size, int seals) {
  Fd fd(::memfd_create("weightcast-hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

Fd make_pipe_end() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  ::close(ends[0]);
  return Fd(ends[1]);
}

// Everything that an offer consists of; tests spoil one part.
struct Offer {
  SegmentOffer message;
  Fd memory;
  Mapping mapping;
  Fd words = make_memory(sizeof(ReleaseWords), kSize);
  Fd filled{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Fd released{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  Offer() {
    memory = make_memory(segment_size(kGeometry), kSize);
    mapping = Mapping::map(memory, segment_size(kGeometry), Access::kReadWrite).value();
    EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, kFutureWrite), 0);
    std::construct_at(&header())->geometry = kGeometry;
  }

  SegmentHeader& header() { return *reinterpret_cast<SegmentHeader*>(mapping.data()); }
  std::byte* area(size_t slot) { return mapping.data() + header_offset(kGeometry, slot); }
  void set_header_size(uint64_t size) { std::memcpy(area(0), &size, sizeof size); }

  Result<std::unique_ptr<Consumer>> attach(FakeGroup& group) {
    const auto [ours, theirs] = make_link();
    const std::array<int, 4> fds{memory.get(), words.get(), filled.get(), released.get()};
    EXPECT_TRUE(send_message(ours, std::as_bytes(std::span(&message, 1)), fds));
    return Consumer::attach(theirs, kGeometry, group, soon());
  }
};

void expect_refused(Offer& offer) {
  FakeGroup group;
  const size_t fds = num_open_fds();
  const size_t mappings = num_mappings();
  const auto consumer = offer.attach(group);
  ASSERT_FALSE(consumer);
  EXPECT_EQ(consumer.error().code(), Code::kCorruption) << consumer.error().message();
  EXPECT_EQ(num_open_fds(), fds);
  EXPECT_EQ(num_mappings(), mappings);
}

TEST(HostilePublisher, AnHonestOfferIsTaken) {
  Offer offer;
  FakeGroup group;
  const auto consumer = offer.attach(group);
  EXPECT_TRUE(consumer) << consumer.error().message();
}

TEST(HostilePublisher, MemoryThatCouldShrinkIsRefused) {
  Offer offer;
  offer.memory = make_memory(segment_size(kGeometry), kFutureWrite);
  expect_refused(offer);
}

TEST(HostilePublisher, MemoryThatOthersCouldWriteIsRefused) {
  Offer offer;
  offer.memory = make_memory(segment_size(kGeometry), kSize);
  expect_refused(offer);
}

TEST(HostilePublisher, MemoryOfAnotherSizeIsRefused) {
  for (const size_t size : {size_t{0}, size_t{4096}, segment_size(kGeometry) + 4096}) {
    Offer offer;
    offer.memory = make_memory(size, kSize | kFutureWrite);
    expect_refused(offer);
  }
}

TEST(HostilePublisher, ReleaseWordsThatCouldShrinkOrAreTooSmallAreRefused) {
  Offer unsealed;
  unsealed.words = make_memory(sizeof(ReleaseWords), 0);
  expect_refused(unsealed);
  Offer small;
  small.words = make_memory(64, kSize);
  expect_refused(small);
}

TEST(HostilePublisher, DescriptorsOfAnotherKindAreRefused) {
  Offer memory;
  memory.memory = make_pipe_end();
  expect_refused(memory);
  Offer filled;
  filled.filled = make_pipe_end();
  expect_refused(filled);
  Offer released;
  released.released = make_pipe_end();
  expect_refused(released);
  Offer blocking;
  blocking.released = Fd(::eventfd(0, EFD_CLOEXEC));
  expect_refused(blocking);
}

TEST(HostilePublisher, AnotherLayoutIsRefused) {
  Offer magic;
  magic.header().magic ^= 1;
  expect_refused(magic);
  Offer epoch;
  epoch.header().geometry.epoch = 4;
  expect_refused(epoch);
  Offer slots;
  slots.header().geometry.num_slots = 1u << 30;
  expect_refused(slots);
}

TEST(HostilePublisher, AnotherMessageIsRefused) {
  Offer magic;
  magic.message.magic = 0;
  expect_refused(magic);
  Offer reader;
  reader.message.reader = kMaxReaders;
  expect_refused(reader);

  FakeGroup group;
  Offer offer;
  const auto [ours, theirs] = make_link();
  const std::array<int, 3> too_few{offer.memory.get(), offer.words.get(), offer.filled.get()};
  ASSERT_TRUE(send_message(ours, std::as_bytes(std::span(&offer.message, 1)), too_few));
  EXPECT_EQ(Consumer::attach(theirs, kGeometry, group, soon()).error().code(), Code::kCorruption);
  const std::array<std::byte, 3> short_message{};
  ASSERT_TRUE(send_message(ours, short_message, {}));
  EXPECT_EQ(Consumer::attach(theirs, kGeometry, group, soon()).error().code(), Code::kCorruption);
}

TEST(HostilePublisher, NumbersThatCanNotBeAreCorruption) {
  for (const uint64_t number : {uint64_t{2}, uint64_t{3}, UINT64_MAX}) {
    Offer offer;
    FakeGroup group;
    const auto consumer = offer.attach(group).value();
    offer.header().published[0].number = number;
    const auto bucket = consumer->next(soon());
    ASSERT_FALSE(bucket);
    EXPECT_EQ(bucket.error().code(), Code::kCorruption);
  }
}

TEST(HostilePublisher, NumbersThatGoBackAreCorruption) {
  Offer offer;
  FakeGroup group;
  const auto consumer = offer.attach(group).value();
  offer.set_header_size(encode(make_header(0, 8), {offer.area(0) + 64, kMaxHeaderSize}));
  offer.header().published[0].number = 1;
  ASSERT_TRUE(consumer->next(soon()));
  ASSERT_TRUE(consumer->release(1));
  std::memcpy(offer.area(1), offer.area(0), 4096);
  offer.header().published[1].number = 2;
  ASSERT_TRUE(consumer->next(soon()));
  offer.header().published[0].number = 0;
  EXPECT_EQ(consumer->next(soon()).error().code(), Code::kCorruption);
}

TEST(HostilePublisher, HeaderSizesBeyondTheAreaAreCorruption) {
  for (const uint64_t size : {uint64_t{0}, kMaxHeaderSize + 1, uint64_t{1} << 40, UINT64_MAX}) {
    Offer offer;
    FakeGroup group;
    const auto consumer = offer.attach(group).value();
    offer.set_header_size(size);
    offer.header().published[0].number = 1;
    EXPECT_EQ(consumer->next(soon()).error().code(), Code::kCorruption) << size;
  }
}

TEST(HostilePublisher, MoreBytesThanTheSlotHasAreCorruption) {
  for (const uint64_t size : {kGeometry.bucket_size + 1, uint64_t{1} << 43, UINT64_MAX}) {
    Offer offer;
    FakeGroup group;
    const auto consumer = offer.attach(group).value();
    offer.set_header_size(encode(make_header(0, size), {offer.area(0) + 64, kMaxHeaderSize}));
    offer.header().published[0].number = 1;
    EXPECT_EQ(consumer->next(soon()).error().code(), Code::kCorruption) << size;
  }
}

TEST(HostilePublisher, MangledHeadersAreDecodedOrRefusedButNeverCrash) {
  std::mt19937 random(17);
  std::uniform_int_distribution<unsigned> any;
  size_t num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    Offer offer;
    FakeGroup group;
    const auto consumer = offer.attach(group).value();
    const size_t size = encode(make_header(0, 4096), {offer.area(0) + 64, kMaxHeaderSize});
    offer.set_header_size(size);
    for (int change = 0; change < 4; ++change) {
      offer.area(0)[64 + any(random) % size] = static_cast<std::byte>(any(random));
    }
    offer.header().published[0].number = 1;
    const auto bucket = consumer->next(soon());
    if (bucket) {
      EXPECT_LE(bucket->payload.size(), kGeometry.bucket_size);
    } else {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 100u);
}

TEST(HostilePublisher, SignalsWithoutABucketDoNotEndTheWait) {
  Offer offer;
  FakeGroup group;
  const auto consumer = offer.attach(group).value();
  const uint64_t one = 1;
  ASSERT_EQ(::write(offer.filled.get(), &one, sizeof one), 8);
  EXPECT_EQ(consumer->next(shortly()).error().code(), Code::kDeadline);
}

}  // namespace
}  // namespace weightcast::testing
