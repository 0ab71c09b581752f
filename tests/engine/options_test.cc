#include "weightcast/engine/options.h"

#include <gtest/gtest.h>

#include "weightcast/engine/session.h"

namespace weightcast {
namespace {

void expect_refused(const HostOptions& options, const std::string& part) {
  const auto session = Session::host(options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), Code::kInvalidArgument);
  EXPECT_NE(session.error().message().find(part), std::string::npos) << session.error().message();
}

TEST(HostOptions, RefuseWhatNoGroupCanBe) {
  expect_refused({.num_receivers = 0}, "1 to 65535 receivers, not 0");
  expect_refused({.num_receivers = 65536}, "receivers, not 65536");
  expect_refused({.bucket_size = 65535}, "a bucket has 64.0 KiB to");
  expect_refused({.cast = DType::kI64}, "cast to F32, F16 or BF16, not I64");
  expect_refused({.backend = "pigeon"}, "pigeon");
}

TEST(JoinOptions, RefuseTheRootsRankAndATicketThatIsNone) {
  EXPECT_EQ(Session::join({.rank = 0}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Session::join({.ticket = "wc1:!"}).error().code(), Code::kCorruption);
}

}  // namespace
}  // namespace weightcast
