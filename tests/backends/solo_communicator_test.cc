#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "weightcast/backends/backend.h"
#include "weightcast/backends/host/host_device.h"

namespace weightcast {
namespace {

class SoloCommunicatorTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Communicator>> create(int rank, int world_size) {
    return (*find_backend("host"))
        ->create_communicator({.rank = rank, .world_size = world_size, .slots = {first_, second_}},
                              *device_);
  }
  Status broadcast(Communicator& comm, MemoryView bytes, int root = 0) {
    return comm.broadcast(bytes, root, *stream_, Deadline::after(std::chrono::seconds(1)));
  }

  std::vector<std::byte> first_ = std::vector<std::byte>(1000);
  std::vector<std::byte> second_ = std::vector<std::byte>(1000);
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = *device_->create_stream();
};
using SoloCommunicatorDeathTest = SoloCommunicatorTest;

TEST_F(SoloCommunicatorTest, TakesEveryPrefixOfASlotAndCountsItsBytes) {
  const auto comm = *create(0, 1);
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->world_size(), 1);
  EXPECT_EQ(comm->bytes_on_wire(), 0u);
  EXPECT_TRUE(broadcast(*comm, MemoryView(first_).first(10)));
  EXPECT_TRUE(broadcast(*comm, second_));
  EXPECT_TRUE(comm->poll_error());
  EXPECT_EQ(comm->bytes_on_wire(), 1010u);
}

TEST_F(SoloCommunicatorTest, RefusesAWorldWithOthers) {
  const auto two = create(0, 2);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code(), Code::kUnsupported);
  const auto wrong = create(1, 1);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::kInvalidArgument);
}

TEST_F(SoloCommunicatorTest, MovesNothingMoreOnceAborted) {
  const auto comm = *create(0, 1);
  comm->abort();
  const Status status = broadcast(*comm, first_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kInternal);
  EXPECT_FALSE(comm->poll_error());
  EXPECT_EQ(comm->bytes_on_wire(), 0u);
}

TEST_F(SoloCommunicatorDeathTest, EndsOnBytesThatAreNoPrefixOfASlotOrAnotherRoot) {
  const auto comm = *create(0, 1);
  std::vector<std::byte> stranger(10);
  EXPECT_DEATH((void)broadcast(*comm, MemoryView(first_).subspan(1)), "is_slot_prefix");
  EXPECT_DEATH((void)broadcast(*comm, stranger), "is_slot_prefix");
  EXPECT_DEATH((void)broadcast(*comm, first_, 1), "root == 0");
}

}  // namespace
}  // namespace weightcast
