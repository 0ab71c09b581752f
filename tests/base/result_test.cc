#include "weightcast/base/result.h"

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error(Code::kInvalidArgument, "odd", 3);
  return number / 2;
}

Status check_quarter(int number, int* quarter) {
  WEIGHTCAST_ASSIGN(const int half, half_of(number));
  WEIGHTCAST_ASSIGN(*quarter, half_of(half));
  WEIGHTCAST_TRY(half_of(number));
  return {};
}

TEST(Result, IsPassedUpAtTheFirstError) {
  int quarter = 0;
  EXPECT_TRUE(check_quarter(8, &quarter));
  EXPECT_EQ(quarter, 2);
  const Status status = check_quarter(6, &quarter);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(), Error(Code::kInvalidArgument, "odd", 3));
  EXPECT_EQ(quarter, 2);
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto read = [&]() -> Result<int> {
    WEIGHTCAST_ASSIGN(const auto pointer, make());
    return *pointer;
  };
  EXPECT_EQ(*read(), 7);
}

TEST(Error, KeepsCodeAndRankUnderMoreContext) {
  const Error error(Code::kPeerLost, "hung up", 2);
  const Error more = error.context("bucket 17");
  EXPECT_EQ(more.message(), "bucket 17: hung up");
  EXPECT_EQ(more.code(), Code::kPeerLost);
  EXPECT_EQ(more.rank(), 2);
  EXPECT_EQ(error.on_rank(5), Error(Code::kPeerLost, "hung up", 5));
  EXPECT_EQ(Error(Code::kInternal, "x").rank(), -1);
}

TEST(SystemError, TellsExhaustionFromFailure) {
  for (const int number : {ENOMEM, ENOSPC, EMFILE, ENFILE, EFBIG, EDQUOT, ENOBUFS}) {
    EXPECT_EQ(system_error(number, "open").code(), Code::kNoResource) << number;
  }
  const Error error = system_error(EPERM, "open file");
  EXPECT_EQ(error.code(), Code::kInternal);
  EXPECT_THAT(error.message(), HasSubstr("open file: Operation not permitted"));
}

TEST(Code, HasANameOfItsOwnForEach) {
  std::set<std::string_view> names;
  for (const Code code : {Code::kInvalidArgument, Code::kBadInput, Code::kPeerLost, Code::kDeadline,
                          Code::kCorruption, Code::kRefused, Code::kNoResource, Code::kUnsupported,
                          Code::kInternal}) {
    names.insert(to_string(code));
  }
  EXPECT_EQ(names.size(), 9u);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(CheckDeathTest, PrintsTheConditionAndWhereItStands) {
  EXPECT_DEATH(WEIGHTCAST_CHECK(1 + 1 == 3), "1 \\+ 1 == 3");
  EXPECT_DEATH(WEIGHTCAST_CHECK(1 + 1 == 3), "result_test.cc");
  WEIGHTCAST_CHECK(1 + 1 == 2);
}

}  // namespace
}  // namespace weightcast
