#include "weightcast/base/size.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weightcast {
namespace {

using ::testing::HasSubstr;

TEST(ParseSize, TakesBinaryDecimalAndPlainUnitsInAnyCase) {
  EXPECT_EQ(*parse_size("1048576"), kMiB);
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("12 B"), 12u);
  EXPECT_EQ(*parse_size("64MiB"), 64 * kMiB);
  EXPECT_EQ(*parse_size("64mib"), 64 * kMiB);
  EXPECT_EQ(*parse_size("64 M"), 64 * kMiB);
  EXPECT_EQ(*parse_size("4K"), 4 * kKiB);
  EXPECT_EQ(*parse_size("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(*parse_size("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(*parse_size("2TiB"), 2048 * kGiB);
  EXPECT_EQ(*parse_size("1tb"), 1'000'000'000'000u);
  EXPECT_EQ(*parse_size("3072MiB"), 3072 * kMiB);
}

TEST(ParseSize, RefusesEverythingElseAndRepeatsIt) {
  for (const char* text :
       {"", "MiB", "-1", "64Mi", "64 apples", "inf", "nan", "1e30", "9e18T", "64MiB64", "0x10"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(size.error().message(), HasSubstr(text));
  }
}

TEST(FormatSize, KeepsWhatParseSizeReads) {
  EXPECT_EQ(format_size(512), "512 B");
  EXPECT_EQ(format_size(64 * kMiB), "64.0 MiB");
  for (const uint64_t size : {uint64_t{0}, uint64_t{1023}, kKiB, 3 * kMiB / 2, 7 * kGiB}) {
    EXPECT_EQ(*parse_size(format_size(size)), size);
  }
}

TEST(ParseDuration, TakesUnitsAndPlainSeconds) {
  EXPECT_EQ(*parse_duration("60s"), Duration(60'000));
  EXPECT_EQ(*parse_duration("60"), Duration(60'000));
  EXPECT_EQ(*parse_duration("500ms"), Duration(500));
  EXPECT_EQ(*parse_duration("1.5 s"), Duration(1500));
  EXPECT_EQ(*parse_duration("2m"), Duration(120'000));
  EXPECT_EQ(*parse_duration("1h"), Duration(3'600'000));
}

TEST(ParseDuration, RefusesZeroNegativeAndUnknownOnes) {
  for (const char* text : {"", "0", "0s", "-1s", "soon", "5 years", "1e30h", "0.1ms", "inf"}) {
    const auto duration = parse_duration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().code(), Code::kInvalidArgument);
  }
}

TEST(FormatDuration, ChoosesSecondsFromOneSecondOn) {
  using namespace std::chrono_literals;
  EXPECT_EQ(format_duration(500ms), "500 ms");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(60s), "60 s");
}

}  // namespace
}  // namespace weightcast
