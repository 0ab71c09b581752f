#include "weightcast/base/deadline.h"

#include <chrono>

#include <gtest/gtest.h>

namespace weightcast {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, HasPassedFromItsOwnPointInTimeOn) {
  EXPECT_TRUE(Deadline::at(Clock::now()).expired());
  EXPECT_TRUE(Deadline::after(-1s).expired());
  EXPECT_FALSE(Deadline::after(1h).expired());
}

TEST(Deadline, LeavesNoNegativeTime) {
  EXPECT_EQ(Deadline::after(-1s).remaining(), Clock::duration::zero());
  EXPECT_EQ(Deadline::after(-1s).poll_timeout_ms(), 0);
  const auto remaining = Deadline::after(1h).remaining();
  EXPECT_LE(remaining, Clock::duration(1h));
  EXPECT_GT(remaining, Clock::duration(59min));
}

TEST(Deadline, GivesPollMillisecondsRoundedUpAndAtMostAnHour) {
  // Rounded down, a wait of less than a millisecond would spin.
  const int short_wait = Deadline::after(500ms + 1ns).poll_timeout_ms();
  EXPECT_GE(short_wait, 1);
  EXPECT_LE(short_wait, 501);
  EXPECT_EQ(Deadline::after(5h).poll_timeout_ms(), 3'600'000);
}

TEST(Deadline, ComparesByTime) {
  const auto now = Clock::now();
  EXPECT_LT(Deadline::at(now), Deadline::at(now + 1ns));
  EXPECT_EQ(Deadline::at(now), Deadline::at(now));
}

TEST(SecondsBetween, CountsInSeconds) {
  const auto now = Clock::now();
  EXPECT_DOUBLE_EQ(seconds_between(now, now + 1500ms), 1.5);
  EXPECT_DOUBLE_EQ(seconds_between(now + 1s, now), -1);
}

}  // namespace
}  // namespace weightcast
