// What holds for both devices of the host, when the caller waits as the interface asks.
#include "weightcast/backends/host/host_device.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "pattern.h"
#include "weightcast/device/host_copy.h"

namespace weightcast {
namespace {

using testing::fill_pattern;
using testing::first_difference;

constexpr size_t kSize = 200'001;

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

struct DeviceCase {
  const char* name;
  std::unique_ptr<Device> (*make)();
};
void PrintTo(const DeviceCase& device, std::ostream* out) { *out << device.name; }

class HostDeviceTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(HostDeviceTest, CopiesAndDigestsByTheTimeAnEventIsDone) {
  const auto stream = *device_->create_stream();
  const auto event = *device_->create_event();
  const auto buffer = *device_->allocate(kSize);
  std::vector<std::byte> source(kSize);
  fill_pattern(source, 1, 2);
  std::vector<uint64_t> digests(num_digest_blocks(kSize));
  std::vector<uint64_t> again(digests.size());
  std::vector<uint64_t> wanted(digests.size());
  host_digest(source, wanted);
  ASSERT_TRUE(stream->copy({buffer->view(), source, Conversion::kNone, digests}));
  ASSERT_TRUE(stream->digest(buffer->view(), again));
  ASSERT_TRUE(stream->record(*event));
  ASSERT_TRUE(event->wait(soon()));
  EXPECT_EQ(first_difference(buffer->view(), 1, 2), kSize);
  EXPECT_EQ(digests, wanted);
  EXPECT_EQ(again, wanted);
}

TEST_P(HostDeviceTest, OrdersTwoStreamsByAnEvent) {
  const auto first = *device_->create_stream();
  const auto second = *device_->create_stream();
  const auto copied = *device_->create_event();
  std::vector<std::byte> source(kSize);
  std::vector<std::byte> between(kSize);
  std::vector<std::byte> destination(kSize);
  for (uint64_t round = 0; round < 20; ++round) {
    fill_pattern(source, 1, round);
    ASSERT_TRUE(first->copy({.destination = between, .source = source}));
    ASSERT_TRUE(first->record(*copied));
    ASSERT_TRUE(second->wait(*copied));
    ASSERT_TRUE(second->copy({.destination = destination, .source = between}));
    ASSERT_TRUE(second->synchronize(soon()));
    ASSERT_EQ(first_difference(destination, 1, round), kSize) << "round " << round;
  }
}

TEST_P(HostDeviceTest, TakesAnEventThatWasNeverRecordedForDone) {
  const auto stream = *device_->create_stream();
  const auto event = *device_->create_event();
  EXPECT_TRUE(event->wait(Deadline::after(std::chrono::seconds(-1))));
  ASSERT_TRUE(stream->wait(*event));
  EXPECT_TRUE(stream->synchronize(soon()));
}

TEST_P(HostDeviceTest, FinishesWorkBeforeItsStreamIsGone) {
  std::vector<std::byte> source(kSize);
  std::vector<std::byte> destination(kSize);
  fill_pattern(source, 5, 6);
  const auto event = *device_->create_event();
  {
    const auto stream = *device_->create_stream();
    ASSERT_TRUE(stream->copy({.destination = destination, .source = source}));
    ASSERT_TRUE(stream->record(*event));
  }
  EXPECT_EQ(first_difference(destination, 5, 6), kSize);
  EXPECT_TRUE(event->wait(Deadline::after(std::chrono::seconds(-1))));
}

TEST_P(HostDeviceTest, AllocatesZeroedMemoryOfAnySizeOrSaysThatThereIsNone) {
  const auto empty = device_->allocate(0);
  ASSERT_TRUE(empty);
  EXPECT_EQ((*empty)->view().size(), 0u);
  const auto odd = device_->allocate(4097);
  ASSERT_TRUE(odd);
  EXPECT_EQ((*odd)->view().size(), 4097u);
  EXPECT_TRUE(std::ranges::all_of((*odd)->view(), [](std::byte b) { return b == std::byte{0}; }));
  const auto huge = device_->allocate(size_t{1} << 60);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), Code::kNoResource);
}

constexpr DeviceCase kDevices[] = {
    {"inline", make_host_device},
    {"queued_1", [] { return make_queued_host_device(1); }},
    {"queued_2", [] { return make_queued_host_device(2); }},
    {"queued_3", [] { return make_queued_host_device(3); }},
    {"queued_4", [] { return make_queued_host_device(4); }},
    {"queued_5", [] { return make_queued_host_device(5); }},
};
INSTANTIATE_TEST_SUITE_P(Devices, HostDeviceTest, ::testing::ValuesIn(kDevices),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace weightcast
