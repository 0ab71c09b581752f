#include "weightcast/device/calibration.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pattern.h"
#include "weightcast/base/hash.h"
#include "weightcast/device/copy_kernels.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Calibration, PicksTheFastestOfTheCandidatesAndSaysHowFastEachIs) {
  const Calibration calibration = choose_kernel("").calibration;
  std::set<std::string_view> measured;
  double best = 0;
  for (const CalibrationRow& row : calibration.rows) {
    EXPECT_GT(row.bandwidth_gbps, 0) << row.kernel;
    measured.insert(row.kernel);
    best = std::max(best, row.bandwidth_gbps);
  }
  for (const CopyKernel& kernel : calibration_candidates()) {
    EXPECT_TRUE(measured.contains(kernel.name)) << kernel.name;
  }
  EXPECT_EQ(measured.size(), calibration_candidates().size());
  const auto winner =
      std::ranges::find(calibration.rows, calibration.winner.name, &CalibrationRow::kernel);
  ASSERT_NE(winner, calibration.rows.end());
  EXPECT_EQ(winner->bandwidth_gbps, best);
  EXPECT_GT(calibration.seconds, 0);
}

TEST(Calibration, TakesTheKernelThatIsNamed) {
  for (const CopyKernel& kernel : copy_kernels()) {
    const Calibration calibration = choose_kernel(kernel.name).calibration;
    EXPECT_EQ(calibration.winner.name, kernel.name);
    EXPECT_EQ(calibration.winner.copy, kernel.copy);
    EXPECT_THAT(calibration.rows, IsEmpty());
  }
}

TEST(Calibration, WarnsOfAnUnknownNameWithTheNamesThereAreAndMeasures) {
  ::testing::internal::CaptureStderr();
  const Calibration calibration = choose_kernel("vax_movc3").calibration;
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("vax_movc3"));
  EXPECT_THAT(log, HasSubstr("memcpy, "));
  EXPECT_EQ(calibration.rows.size(), calibration_candidates().size());
}

TEST(Calibration, IsMadeOnceAProcess) {
  EXPECT_EQ(&calibration(), &calibration());
  EXPECT_EQ(&calibration(), &chosen_kernel().calibration);
}

TEST(CopyAndDigest, GivesTheSameBytesAndDigestsInEitherOrder) {
  constexpr size_t kSize = 5 * kDigestBlockSize + 12345;
  std::vector<std::byte> source(kSize);
  testing::fill_pattern(source, 1, 2);
  std::vector<uint64_t> wanted(num_digest_blocks(kSize));
  host_digest(source, wanted);
  for (const CopyKernel& kernel : copy_kernels()) {
    for (const DigestOrder order :
         {DigestOrder{false, kDigestBlockSize}, DigestOrder{false, 2 * kDigestBlockSize},
          DigestOrder{true, kDigestBlockSize}}) {
      std::vector<std::byte> destination(kSize);
      std::vector<uint64_t> digests(wanted.size());
      copy_and_digest(kernel, order, {destination, source, Conversion::kNone, digests});
      EXPECT_EQ(testing::first_difference(destination, 1, 2), kSize) << kernel.name;
      EXPECT_EQ(digests, wanted) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace weightcast
