// Limits of the machine: each is named in the error, with what to raise.
#include <cerrno>

#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.h"
#include "weightcast/base/memory_limit.h"

namespace weightcast::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr SegmentGeometry kLimitedGeometry{.epoch = 1, .bucket_size = 1u << 20, .num_slots = 2};

// What `Publisher::create` says in a process in which `resource` is limited to `limit`.
std::string create_under(__rlimit_resource resource, rlim_t limit) {
  Child child([=]() -> std::string {
    FakeGroup group;
    // Makes the error once while there are descriptors: the vptr check of the sanitizer needs some
    // for each type that it sees first.
    static_cast<void>(system_error(EMFILE, ""));
    const rlimit limits{limit, limit};
    if (::setrlimit(resource, &limits) != 0) return "setrlimit";
    const auto publisher = Publisher::create(kLimitedGeometry, group);
    if (publisher) return "created";
    return publisher.error().code() == Code::kNoResource ? publisher.error().message() : "code";
  });
  return child.report();
}

TEST(Limits, FileSize) {
  EXPECT_THAT(create_under(RLIMIT_FSIZE, 1u << 20),
              AllOf(HasSubstr("shared memory of 4.0 MiB"), HasSubstr("`ulimit -f`")));
}

TEST(Limits, Descriptors) {
  const Fd lowest_free(::dup(0));
  EXPECT_THAT(create_under(RLIMIT_NOFILE, static_cast<rlim_t>(lowest_free.get())),
              HasSubstr("`ulimit -n`"));
}

TEST(Limits, AddressSpace) {
  Child child([]() -> std::string {
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &none) != 0 || address_space_limit()) return "a limit without limit";
    const rlimit limits{rlim_t{1} << 47, rlim_t{1} << 47};  // sanitizers reserve much
    if (::setrlimit(RLIMIT_AS, &limits) != 0) return "setrlimit";
    const auto limit = address_space_limit();
    if (!limit || limit->left >= limits.rlim_cur) return "no limit";
    if (!check_memory_left(1u << 20)) return "too little is left";
    const auto status = check_memory_left(limit->left + 1);
    return status ? "no error" : status.error().message();
  });
  EXPECT_THAT(child.report(), HasSubstr("raise it or choose a smaller --bucket"));
}

TEST(Limits, AGeometryOutOfRangeIsAnError) {
  FakeGroup group;
  EXPECT_FALSE(Publisher::create({.bucket_size = 1, .num_slots = 2}, group));
  EXPECT_FALSE(Publisher::create({.bucket_size = 1u << 20, .num_slots = 65}, group));
}

}  // namespace
}  // namespace weightcast::testing
