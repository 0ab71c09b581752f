#include "weightcast/device/copy_kernels.h"

#include <cstring>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guarded.h"
#include "pattern.h"

namespace weightcast {
namespace {

using testing::fill_pattern;
using testing::first_difference;
using testing::Guarded;

constexpr size_t kSizes[] = {0,     1,     2,     7,     63,    64,    65,     1000,   4097,
                             32767, 32768, 32769, 32831, 40961, 65537, 131071, 196608, 300001};

// Copies with a source and a destination that are this far off a line.
void expect_copies(const CopyKernel& kernel, size_t source_offset, size_t destination_offset) {
  for (const size_t size : kSizes) {
    Guarded source(size, source_offset);
    fill_pattern(source.bytes(), 1, size);
    Guarded destination(size, destination_offset);
    kernel.copy(destination.bytes().data(), source.bytes().data(), size);
    ASSERT_EQ(first_difference(destination.bytes(), 1, size), size)
        << kernel.name << " size " << size << " source " << source_offset << " destination "
        << destination_offset;
    ASSERT_EQ(first_difference(source.bytes(), 1, size), size);
    ASSERT_TRUE(destination.intact()) << kernel.name << " size " << size;
  }
}

TEST(CopyKernels, MoveEveryByteAndNoOtherAtAnyAlignmentAndSize) {
  for (const CopyKernel& kernel : copy_kernels()) {
    expect_copies(kernel, 0, 0);
    expect_copies(kernel, 1, 0);
    expect_copies(kernel, 0, 1);
    expect_copies(kernel, 8, 63);
    expect_copies(kernel, 33, 17);
  }
}

TEST(CopyKernels, StartWithMemcpyAndHaveNamesOfTheirOwn) {
  EXPECT_EQ(copy_kernels().front().name, "memcpy");
  std::set<std::string_view> names;
  for (const CopyKernel& kernel : copy_kernels()) names.insert(kernel.name);
  EXPECT_EQ(names.size(), copy_kernels().size());
}

#if defined(__x86_64__)
TEST(CopyKernels, HoldEveryWalkOfEveryInstructionSetOfThisCpu) {
  const bool avx2 = __builtin_cpu_supports("avx2");
  const bool avx512 = __builtin_cpu_supports("avx512f");
  std::set<std::string_view> names;
  for (const CopyKernel& kernel : copy_kernels()) names.insert(kernel.name);
  EXPECT_TRUE(names.contains("rep_movsb"));
  for (const char* walk : kWalkNames) {
    EXPECT_TRUE(names.contains(std::string("sse2_") + walk));
    EXPECT_EQ(names.contains(std::string("avx2_") + walk), avx2);
    EXPECT_EQ(names.contains(std::string("avx512_") + walk), avx512);
  }
}
#endif

TEST(CopyKernels, AreMeasuredInTheWidestInstructionSetOnly) {
  const std::string_view widest = kernel_sets().back()->name;
  for (const CopyKernel& kernel : calibration_candidates()) {
    EXPECT_TRUE(kernel.name == "memcpy" || kernel.name == "rep_movsb" ||
                kernel.name.starts_with(widest))
        << kernel.name;
  }
}

}  // namespace
}  // namespace weightcast
