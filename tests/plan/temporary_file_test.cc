#include "weightcast/plan/temporary_file.h"

#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "scratch.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

using ::testing::ElementsAre;
using testing::exit_code_of_child;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Scratch;
using Kind = TemporaryFile::Kind;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class TemporaryFileOfKind : public ::testing::TestWithParam<Kind> {
 protected:
  // Skips, with the reason, where the file system has no files of the kind.
  Result<TemporaryFile> create(const std::string& name) {
    return TemporaryFile::create(scratch_.path() / name, GetParam());
  }
  void SetUp() override {
    const auto file = create("probe");
    if (!file && file.error().code() == Code::kUnsupported) GTEST_SKIP() << file.error().message();
    ASSERT_TRUE(file.has_value()) << file.error().message();
  }
  Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, TemporaryFileOfKind,
                         ::testing::Values(Kind::kUnnamed, Kind::kNamed), [](const auto& kind) {
                           return kind.param == Kind::kUnnamed ? "Unnamed" : "Named";
                         });

TEST_P(TemporaryFileOfKind, CommitPutsTheFileInItsPlace) {
  auto file = create("f").value();
  ASSERT_TRUE(file.reserve(10).has_value());
  ASSERT_TRUE(file.write(4, bytes_of("efgh")).has_value());
  ASSERT_TRUE(file.write(0, bytes_of("abcd")).has_value());
  ASSERT_TRUE(file.write(8, bytes_of("ij")).has_value());
  const Status status = file.commit();
  ASSERT_TRUE(status.has_value()) << status.error().message();
  EXPECT_EQ(scratch_.read("f"), "abcdefghij");
  EXPECT_THAT(scratch_.names(), ElementsAre("f"));
}

TEST_P(TemporaryFileOfKind, CommitReplacesWhatWasThere) {
  scratch_.write("f", "a longer text than the new one");
  auto file = create("f").value();
  ASSERT_TRUE(file.reserve(3).has_value());
  ASSERT_TRUE(file.write(0, bytes_of("new")).has_value());
  EXPECT_EQ(scratch_.read("f"), "a longer text than the new one");
  ASSERT_TRUE(file.commit().has_value());
  EXPECT_EQ(scratch_.read("f"), "new");
  EXPECT_THAT(scratch_.names(), ElementsAre("f"));
}

TEST_P(TemporaryFileOfKind, DestroyedItLeavesNoTrace) {
  scratch_.write("f", "old");
  {
    auto file = create("f").value();
    ASSERT_TRUE(file.reserve(kMiB).has_value());
    TemporaryFile moved = std::move(file);
    ASSERT_TRUE(moved.write(0, bytes_of("new")).has_value());
  }
  EXPECT_EQ(scratch_.read("f"), "old");
  EXPECT_THAT(scratch_.names(), ElementsAre("f"));
}

TEST_P(TemporaryFileOfKind, AFailedCommitLeavesWhatWasThereAndNothingElse) {
  std::filesystem::create_directory(scratch_.path() / "f");
  scratch_.write("f/kept", "old");
  {
    auto file = create("f").value();
    ASSERT_TRUE(file.reserve(3).has_value());
    EXPECT_FALSE(file.commit().has_value()) << "a directory can not be replaced";
  }
  EXPECT_THAT(scratch_.names(), ElementsAre("f"));
  EXPECT_EQ(scratch_.read("f/kept"), "old");
}

TEST_P(TemporaryFileOfKind, RoomIsReservedOnTheDisk) {
  auto file = create("f").value();
  ASSERT_TRUE(file.reserve(kMiB).has_value());
  ASSERT_TRUE(file.commit().has_value());
  struct stat status {};
  ASSERT_EQ(::stat((scratch_.path() / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kMiB));
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, kMiB);
}

TEST_P(TemporaryFileOfKind, MoreThanTheDiskHasIsRefusedBeforeItFills) {
  auto file = create("f").value();
  const Status status = file.reserve(uint64_t{1} << 60);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::kNoResource);
  EXPECT_THAT(status.error().message(), HasSubstr((scratch_.path() / "f").native()));
  EXPECT_FALSE(file.reserve(uint64_t{1} << 63).has_value());
}

TEST_P(TemporaryFileOfKind, TheFileSizeLimitIsAnErrorAndNoSignal) {
  const int code = exit_code_of_child([&] {
    const rlimit limit{kMiB, kMiB};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    auto file = create("f");
    if (!file) return 11;
    const Status status = file->reserve(kMiB + 1);
    if (status || status.error().code() != Code::kNoResource) return 12;
    if (status.error().message().find("ulimit -f") == std::string::npos) return 13;
    return file->reserve(kMiB) ? 0 : 14;
  });
  EXPECT_EQ(code, 0);
}

TEST(TemporaryFile, KilledItLeavesNoTraceWhereFilesCanBeUnnamed) {
  const Scratch scratch;
  const auto probe = TemporaryFile::create(scratch.path() / "f", Kind::kUnnamed);
  if (!probe) GTEST_SKIP() << probe.error().message();
  const int code = exit_code_of_child([&] {
    auto file = TemporaryFile::create(scratch.path() / "f");
    if (!file || !file->reserve(kMiB) || !file->write(0, bytes_of("new"))) return 1;
    return ::raise(SIGKILL);
  });
  EXPECT_EQ(code, -1) << "the child was killed";
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(TemporaryFile, ADirectoryThatIsNotThereIsTheCallersFault) {
  const Scratch scratch;
  const auto file = TemporaryFile::create(scratch.path() / "absent" / "f");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code(), Code::kBadInput);
  EXPECT_THAT(file.error().message(), HasSubstr("No such file or directory"));
}

TEST(TemporaryFile, AFullDiskIsNamedBeforeAnythingIsWritten) {
  const Scratch scratch;
  const int code = exit_code_of_child([&] {
    if (::unshare(CLONE_NEWNS) != 0) return 77;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (::mount("none", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0) return 77;
    auto file = TemporaryFile::create(scratch.path() / "f");
    if (!file) return 11;
    const Status status = file->reserve(2 * kMiB);
    if (status || status.error().code() != Code::kNoResource) return 12;
    if (status.error().message().find("1.0 MiB free") == std::string::npos) return 13;
    return file->reserve(kMiB / 2) && file->commit() ? 0 : 14;
  });
  if (code == 77) GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace weightcast
