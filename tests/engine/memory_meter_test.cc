#include "weightcast/engine/memory_meter.h"

#include <gtest/gtest.h>

#include "weightcast/base/mapping.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

TEST(MemoryMeter, SeesMemoryThatWasTouchedAndForgetsItAfterReset) {
  constexpr uint64_t kSize = 64 * kMiB;
  MemoryMeter meter;
  EXPECT_LT(meter.peak(), kSize / 2);
  auto mapping = Mapping::anonymous(kSize);
  ASSERT_TRUE(mapping);
  ASSERT_TRUE(populate({mapping->data(), kSize}, Access::kReadWrite));
  EXPECT_GE(meter.peak(), kSize * 9 / 10);
  mapping->reset();
  EXPECT_GE(meter.peak(), kSize * 9 / 10);
  meter.reset();
  EXPECT_LT(meter.peak(), kSize / 2);
}

}  // namespace
}  // namespace weightcast
