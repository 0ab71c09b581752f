#include "weightcast/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string logged(LogLevel level, std::string_view text) {
  ::testing::internal::CaptureStderr();
  log_message(level, text);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, PrintsFromTheChosenLevelUpwards) {
  set_log_level(LogLevel::kWarn);
  EXPECT_THAT(logged(LogLevel::kInfo, "quiet"), IsEmpty());
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  EXPECT_THAT(logged(LogLevel::kWarn, "loud"), HasSubstr("loud\n"));
  EXPECT_THAT(logged(LogLevel::kError, "louder"), HasSubstr("error louder\n"));
  EXPECT_TRUE(log_enabled(LogLevel::kError));
}

TEST(Log, PutsThePrefixBeforeEveryLineAndBracesUntouched) {
  set_log_level(LogLevel::kWarn);
  set_log_prefix("rank 2 epoch 1");
  EXPECT_THAT(logged(LogLevel::kWarn, "{} %s {"), HasSubstr("warning rank 2 epoch 1 {} %s {\n"));
  set_log_prefix("");
}

}  // namespace
}  // namespace weightcast
