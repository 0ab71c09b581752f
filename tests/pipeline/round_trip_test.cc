// Packs, moves and receives whole versions in one process, over the inline host device and over the
// queued one, in which whatever was not waited for is not there yet.

#include <thread>

#include <gtest/gtest.h>

#include "loopback_store.h"
#include "models.h"
#include "pattern.h"
#include "weightcast/backends/backend.h"
#include "weightcast/backends/host/host_device.h"
#include "weightcast/pipeline/assembler.h"
#include "weightcast/pipeline/bucket_receiver.h"
#include "weightcast/pipeline/bucket_sender.h"
#include "weightcast/pipeline/comm_thread.h"
#include "weightcast/pipeline/slot_ring.h"

namespace weightcast {
namespace {

using testing::awkward_model;
using testing::first_difference;
using testing::LoopbackStore;
using testing::make_pattern;
using testing::random_model;

constexpr uint64_t kRoundTripBucketSize = 256 * 1024;
constexpr Duration kTimeout{30'000};

struct Options {
  uint64_t bucket_size = kRoundTripBucketSize;
  size_t num_slots = 2;
  bool checksum = true;
  bool overlap = true;
  bool announce = true;
};

Status wait(const std::function<Status(Deadline)>& what) { return what(Deadline::after(kTimeout)); }

// The sending half: ring and communication thread over `store`, the device given.
class SendingSide {
 public:
  SendingSide(LoopbackStore& store, Device& device, const Options& options)
      : store_(store), options_(options) {
    ring_ = *SlotRing::create(store, device, options.bucket_size);
    CommThread::Config config{.create_communicator = (*find_backend("host"))->create_communicator,
                              .checksum = options.checksum,
                              .timeout = kTimeout};
    for (size_t i = 0; i < store.num_slots(); ++i) config.comm.slots.push_back(store.payload(i));
    comm_thread_ = *CommThread::start(config, device, *ring_, store);
    stream_ = *device.create_stream();
  }

  // Sends `metas` with pattern bytes of `version`; what it returns is the sender's digest.
  Hash128 send(const std::vector<TensorMeta>& metas, uint64_t version) {
    BucketSenderConfig config{.sequence = version,
                              .bucket_size = options_.bucket_size,
                              .checksum = options_.checksum,
                              .overlap = options_.overlap};
    if (options_.announce) config.announced = metas;
    BucketSender sender(config, *ring_, store_, *stream_, wait);
    std::vector<std::vector<std::byte>> sources;
    for (size_t i = 0; i < metas.size(); ++i) {
      // On a queued stream the source must live until the copy is done.
      sources.push_back(make_pattern(metas[i], version, i));
      const Status pushed = sender.push(metas[i], sources.back());
      EXPECT_TRUE(pushed) << pushed.error().message();
    }
    const Status finished = sender.finish();
    EXPECT_TRUE(finished) << finished.error().message();
    const MoveReport report = comm_thread_->take_report();
    EXPECT_LE(report.bytes_on_wire, sender.payload_size() * 101 / 100 + metas.size() * 256);
    VersionDigest digest(options_.checksum ? DigestKind::kBytes : DigestKind::kMetas);
    for (size_t i = 0; i < metas.size(); ++i) {
      digest.add(metas[i], options_.checksum ? report.tensor_digests.at(i) : Hash128());
    }
    return digest.finish();
  }

 private:
  LoopbackStore& store_;
  Options options_;
  std::unique_ptr<SlotRing> ring_;
  std::unique_ptr<CommThread> comm_thread_;
  std::unique_ptr<Stream> stream_;
};

// Receives one version tensor by tensor and compares every byte; returns the receiver's digest.
Hash128 receive(LoopbackStore& store, Stream& stream, const std::vector<TensorMeta>& metas,
                uint64_t version, const Options& options) {
  BucketReceiverConfig config{
      .sequence = version, .bucket_size = options.bucket_size, .checksum = options.checksum};
  if (options.announce) config.announced = metas;
  BucketReceiver receiver(config, store, stream, [](BucketSource& source) {
    return source.next(Deadline::after(kTimeout));
  });
  Assembler assembler(receiver);
  uint64_t num_tensors = 0;
  while (true) {
    auto tensor = assembler.next();
    if (!tensor) {
      ADD_FAILURE() << tensor.error().message();
      return {};
    }
    if (!*tensor) break;
    EXPECT_EQ((*tensor)->index, num_tensors);
    EXPECT_EQ(*(*tensor)->meta, metas.at(num_tensors));
    const ConstMemoryView bytes = (*tensor)->bytes;
    EXPECT_EQ(bytes.size(), byte_size(metas.at(num_tensors)));
    EXPECT_EQ(first_difference(bytes, version, num_tensors), bytes.size())
        << describe(metas.at(num_tensors));
    ++num_tensors;
  }
  EXPECT_EQ(num_tensors, metas.size());
  EXPECT_TRUE(receiver.finished());
  return receiver.digest();
}

void round_trip(Device& device, const std::vector<TensorMeta>& metas, const Options& options) {
  LoopbackStore store(options.num_slots, options.bucket_size);
  SendingSide sending(store, device, options);
  const auto stream = *device.create_stream();
  for (const uint64_t version : {1u, 2u, 3u}) {
    Hash128 received;
    std::jthread receiver([&] { received = receive(store, *stream, metas, version, options); });
    const Hash128 sent = sending.send(metas, version);
    receiver.join();
    EXPECT_EQ(sent, received);
    EXPECT_NE(sent, Hash128());
  }
}

class RoundTrip : public ::testing::TestWithParam<Options> {};

TEST_P(RoundTrip, DeliversEveryByteOnTheInlineDevice) {
  round_trip(*make_host_device(), awkward_model(GetParam().bucket_size), GetParam());
}

TEST_P(RoundTrip, DeliversEveryByteOnTheQueuedDeviceUnderManySeeds) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    round_trip(*make_queued_host_device(seed), awkward_model(GetParam().bucket_size), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Options, RoundTrip,
                         ::testing::Values(Options{}, Options{.num_slots = 5},
                                           Options{.num_slots = 1}, Options{.checksum = false},
                                           Options{.overlap = false}, Options{.announce = false},
                                           Options{.checksum = false, .announce = false},
                                           Options{.bucket_size = 64 * 1024},
                                           Options{.bucket_size = 100'000}));

TEST(RoundTrip, DeliversTenThousandTinyTensors) {
  round_trip(*make_host_device(), random_model(10'000, 900, 7), {.bucket_size = 4 << 20});
}

TEST(RoundTrip, DeliversAVersionWithoutTensors) {
  round_trip(*make_host_device(), {}, {.announce = false});
  LoopbackStore store(2, kRoundTripBucketSize);
  const auto device = make_host_device();
  SendingSide sending(store, *device, {});
  sending.send({}, 1);
  const auto stream = *device->create_stream();
  receive(store, *stream, {}, 1, {});
}

// A reader that makes the pattern on the fly and counts what it was asked for.
class PatternReader final : public TensorReader {
 public:
  PatternReader(uint64_t version, uint64_t tensor) : version_(version), tensor_(tensor) {}
  Status read(uint64_t offset, MemoryView destination) override {
    EXPECT_EQ(offset, next_offset_);
    next_offset_ += destination.size();
    testing::fill_pattern(destination, version_, tensor_, offset);
    return {};
  }
  uint64_t bytes_read() const { return next_offset_; }

 private:
  uint64_t version_;
  uint64_t tensor_;
  uint64_t next_offset_ = 0;
};

TEST(BucketSender, ReadsATensorOnceAndInOrder) {
  const Options options{.bucket_size = 3'000'000, .num_slots = 20};
  const std::vector<TensorMeta> metas{{"a", DType::kU8, {10}}, {"b", DType::kF32, {5'000'001}}};
  LoopbackStore store(options.num_slots, options.bucket_size);
  const auto device = make_host_device();
  const auto ring = *SlotRing::create(store, *device, options.bucket_size);
  CommThread::Config comm{.create_communicator = (*find_backend("host"))->create_communicator};
  for (size_t i = 0; i < store.num_slots(); ++i) comm.comm.slots.push_back(store.payload(i));
  const auto comm_thread = *CommThread::start(comm, *device, *ring, store);
  const auto stream = *device->create_stream();
  BucketSender sender({.sequence = 1, .bucket_size = options.bucket_size, .announced = metas},
                      *ring, store, *stream, wait);
  for (size_t i = 0; i < metas.size(); ++i) {
    PatternReader reader(1, i);
    ASSERT_TRUE(sender.push(metas[i], reader));
    EXPECT_EQ(reader.bytes_read(), byte_size(metas[i]));
  }
  ASSERT_TRUE(sender.finish());
  receive(store, *stream, metas, 1, options);
}

class SenderErrors : public ::testing::Test {
 protected:
  BucketSender make(std::optional<std::vector<TensorMeta>> announced) {
    return BucketSender(
        {.sequence = 1, .bucket_size = kRoundTripBucketSize, .announced = std::move(announced)},
        *ring_, store_, *stream_, wait);
  }
  static std::string message(const Status& status) {
    return status ? "success" : status.error().message();
  }

  LoopbackStore store_{2, kRoundTripBucketSize};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<SlotRing> ring_ = *SlotRing::create(store_, *device_, kRoundTripBucketSize);
  std::unique_ptr<Stream> stream_ = *device_->create_stream();
  std::vector<std::byte> bytes_ = std::vector<std::byte>(8);
};

TEST_F(SenderErrors, RefuseANameThatComesTwice) {
  BucketSender sender = make({});
  ASSERT_TRUE(sender.push({"a", DType::kU8, {8}}, bytes_));
  EXPECT_EQ(message(sender.push({"a", DType::kU8, {8}}, bytes_)), "tensor name a comes twice");
}

TEST_F(SenderErrors, RefuseASourceOfAnotherSize) {
  BucketSender sender = make({});
  EXPECT_EQ(message(sender.push({"a", DType::kF32, {3}}, bytes_)),
            "a F32 [3] has 12 bytes, not the 8 that were passed");
}

TEST_F(SenderErrors, RefuseWhatWasNotAnnounced) {
  BucketSender sender = make(std::vector<TensorMeta>{{"a", DType::kU8, {8}}});
  EXPECT_EQ(message(sender.push({"b", DType::kU8, {8}}, bytes_)),
            "tensor 0 is b U8 [8], but a U8 [8] was announced");
}

TEST_F(SenderErrors, RefuseMoreAndFewerThanAnnounced) {
  BucketSender sender = make(std::vector<TensorMeta>{{"a", DType::kU8, {8}}});
  EXPECT_EQ(message(sender.finish()),
            "1 tensors were announced, 0 were pushed; the next is a U8 [8]");
  ASSERT_TRUE(sender.push({"a", DType::kU8, {8}}, bytes_));
  EXPECT_EQ(message(sender.push({"b", DType::kU8, {8}}, bytes_)),
            "b U8 [8] is one tensor more than the 1 announced");
}

TEST(BucketReceiver, NamesTheTensorWhoseBytesWereChanged) {
  const Options options{};
  const std::vector<TensorMeta> metas{{"whole", DType::kU8, {1000}}, {"torn", DType::kU8, {1000}}};
  LoopbackStore store(2, kRoundTripBucketSize);
  const auto device = make_host_device();
  SendingSide(store, *device, options).send(metas, 1);
  store.payload(0)[1024 + 17] ^= std::byte{1};
  const auto stream = *device->create_stream();
  BucketReceiver receiver(
      {.sequence = 1, .bucket_size = kRoundTripBucketSize, .announced = metas}, store, *stream,
      [](BucketSource& source) { return source.next(Deadline::after(kTimeout)); });
  auto lease = receiver.next();
  ASSERT_TRUE(lease && *lease);
  EXPECT_TRUE(receiver.verify((*lease)->pieces()[0]));
  const Status torn = receiver.verify((*lease)->pieces()[1]);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code(), Code::kCorruption);
  EXPECT_NE(torn.error().message().find("tensor torn U8 [1000] arrived with digest"),
            std::string::npos);
}

TEST(BucketReceiver, RefusesPiecesOutOfOrderAndABucketOfAnotherAttempt) {
  const Options options{};
  const std::vector<TensorMeta> metas{{"a", DType::kU8, {1000}}, {"b", DType::kU8, {1000}}};
  LoopbackStore store(2, kRoundTripBucketSize);
  const auto device = make_host_device();
  SendingSide sending(store, *device, options);
  sending.send(metas, 1);
  sending.send(metas, 2);
  const auto stream = *device->create_stream();
  const auto next = [](BucketSource& source) { return source.next(Deadline::after(kTimeout)); };
  {
    BucketReceiver receiver(
        {.sequence = 1, .bucket_size = kRoundTripBucketSize, .announced = metas}, store, *stream,
        next);
    auto lease = receiver.next();
    ASSERT_TRUE(lease && *lease);
    const Status out_of_order = receiver.verify((*lease)->pieces()[1]);
    ASSERT_FALSE(out_of_order);
    EXPECT_EQ(out_of_order.error().code(), Code::kInvalidArgument);
  }
  BucketReceiver receiver({.sequence = 1, .bucket_size = kRoundTripBucketSize, .announced = metas},
                          store, *stream, next);
  auto lease = receiver.next();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code(), Code::kCorruption);
}

}  // namespace
}  // namespace weightcast
