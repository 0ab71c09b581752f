#include "weightcast/base/memory_limit.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "weightcast/base/random.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// A directory that stands for the root of a file system.
class MemoryLimitTest : public ::testing::Test {
 protected:
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void mount_version2(const std::string& mount_root = "/") {
    write("/proc/self/mountinfo",
          "24 1 0:22 / /proc rw - proc proc rw\n"
          "30 24 0:26 " +
              mount_root + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  }

  const std::string root_ = ::testing::TempDir() + "memory-limit-" + random_hex(8);
};

TEST_F(MemoryLimitTest, NothingIsKnownWithoutFiles) {
  EXPECT_EQ(cgroup_memory_limit(root_), std::nullopt);
  EXPECT_TRUE(check_memory_left(1 * kMiB, root_));
}

TEST_F(MemoryLimitTest, Version2TakesTheTightestOfTheGroupAndItsAncestors) {
  mount_version2();
  write("/proc/self/cgroup", "0::/jobs/seven\n");
  write("/sys/fs/cgroup/jobs/seven/memory.max", "max\n");
  write("/sys/fs/cgroup/jobs/seven/memory.current", "1000\n");
  EXPECT_EQ(cgroup_memory_limit(root_), std::nullopt);
  write("/sys/fs/cgroup/jobs/memory.max", "104857600\n");
  write("/sys/fs/cgroup/jobs/memory.current", "37748736\n");
  EXPECT_EQ(cgroup_memory_limit(root_), (MemoryLimit{"memory.max of the cgroup", 64 * kMiB}));
  write("/sys/fs/cgroup/jobs/seven/memory.max", "2000\n");
  EXPECT_EQ(cgroup_memory_limit(root_)->left, 1000u);
}

TEST_F(MemoryLimitTest, ThePageCacheOfFilesCountsAsFree) {
  mount_version2();
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "10000\n");
  write("/sys/fs/cgroup/memory.current", "9000\n");
  write("/sys/fs/cgroup/memory.stat", "anon 1\nfile 8000\ninactive_file 5000\nactive_file 2000\n");
  EXPECT_EQ(cgroup_memory_limit(root_)->left, 8000u);
}

TEST_F(MemoryLimitTest, Version1WithItsUnlimitedNumber) {
  write("/proc/self/mountinfo",
        "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("/proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/jobs/seven\n0::/\n");
  write("/sys/fs/cgroup/memory/jobs/seven/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/jobs/seven/memory.usage_in_bytes", "5\n");
  EXPECT_EQ(cgroup_memory_limit(root_), std::nullopt);
  write("/sys/fs/cgroup/memory/jobs/seven/memory.limit_in_bytes", "8192\n");
  write("/sys/fs/cgroup/memory/jobs/seven/memory.usage_in_bytes", "4096\n");
  write("/sys/fs/cgroup/memory/jobs/seven/memory.stat", "total_inactive_file 1000\n");
  EXPECT_EQ(cgroup_memory_limit(root_), (MemoryLimit{"memory.limit_in_bytes of the cgroup", 5096}));
}

TEST_F(MemoryLimitTest, InAContainerThePathOfTheHostIsNotSeen) {
  mount_version2("/docker/abc");
  write("/proc/self/cgroup", "0::/docker/abc/inner\n");
  write("/sys/fs/cgroup/inner/memory.max", "4096\n");
  write("/sys/fs/cgroup/inner/memory.current", "0\n");
  EXPECT_EQ(cgroup_memory_limit(root_)->left, 4096u);
  write("/proc/self/cgroup", "0::/somewhere/else\n");
  write("/sys/fs/cgroup/memory.max", "8192\n");
  write("/sys/fs/cgroup/memory.current", "0\n");
  EXPECT_EQ(cgroup_memory_limit(root_)->left, 8192u);
}

TEST_F(MemoryLimitTest, UsageOverTheLimitLeavesNothing) {
  mount_version2();
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "10\n");
  write("/sys/fs/cgroup/memory.current", "20\n");
  EXPECT_EQ(cgroup_memory_limit(root_)->left, 0u);
}

TEST_F(MemoryLimitTest, FilesOfNonsenseAreNoLimit) {
  write("/proc/self/mountinfo", "nonsense\n - cgroup2\n1 2 3 / /c rw - cgroup2 c rw\n - \n");
  write("/proc/self/cgroup", "0::\n::\n0::relative\nx\n");
  write("/c/memory.max", "many\n");
  EXPECT_EQ(cgroup_memory_limit(root_), std::nullopt);
}

TEST_F(MemoryLimitTest, TheErrorSaysWhatToRaise) {
  mount_version2();
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "67108864\n");
  write("/sys/fs/cgroup/memory.current", "0\n");
  EXPECT_TRUE(check_memory_left(64 * kMiB, root_));
  const auto status = check_memory_left(128 * kMiB, root_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kNoResource);
  EXPECT_EQ(status.error().message(),
            "shared memory of 128.0 MiB is over what memory.max of the cgroup leaves (64.0 MiB): "
            "raise it or choose a smaller --bucket");
}

}  // namespace
}  // namespace weightcast
