#include "weightcast/comm/communicator.h"

#include <vector>

#include <gtest/gtest.h>

namespace weightcast {
namespace {

TEST(CommConfig, IsValidWhenTheRankFitsTheWorld) {
  EXPECT_TRUE(validate({.rank = 0, .world_size = 1, .slots = {}}));
  EXPECT_TRUE(validate({.rank = 7, .world_size = 8, .slots = {}}));
  for (const CommConfig& config : {CommConfig{.rank = 8, .world_size = 8, .slots = {}},
                                   CommConfig{.rank = -1, .world_size = 8, .slots = {}},
                                   CommConfig{.rank = 0, .world_size = 0, .slots = {}}}) {
    const Status status = validate(config);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument);
  }
}

TEST(SlotPrefix, BeginsWhereASlotBeginsAndEndsInside) {
  std::vector<std::byte> first(100);
  std::vector<std::byte> second(50);
  const CommConfig config{.slots = {first, second}};
  const ConstMemoryView bytes(first);
  EXPECT_TRUE(is_slot_prefix(config, bytes));
  EXPECT_TRUE(is_slot_prefix(config, bytes.first(1)));
  EXPECT_TRUE(is_slot_prefix(config, bytes.first(0)));
  EXPECT_TRUE(is_slot_prefix(config, second));
  EXPECT_FALSE(is_slot_prefix(config, bytes.subspan(1)));
  EXPECT_FALSE(is_slot_prefix(config, ConstMemoryView(second.data(), 51)));
  EXPECT_FALSE(is_slot_prefix({}, bytes));
}

}  // namespace
}  // namespace weightcast
