#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weightcast/backends/backend.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;

TEST(Backends, AreFoundByTheirNamesWhichAllDiffer) {
  std::set<std::string_view> names;
  for (const Backend& backend : backends()) {
    names.insert(backend.name);
    const auto found = find_backend(backend.name);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, &backend);
  }
  EXPECT_EQ(names.size(), backends().size());
  EXPECT_TRUE(names.contains("host"));
}

TEST(Backends, ListTheNamesThereAreWhenOneIsUnknown) {
  const auto found = find_backend("telegraph");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(found.error().message(), HasSubstr("telegraph"));
  EXPECT_THAT(found.error().message(), HasSubstr("host"));
}

TEST(HostBackend, WorksEverywhereAndHasOneDevice) {
  const Backend* host = *find_backend("host");
  EXPECT_EQ(host->device_kind, DeviceKind::kHost);
  EXPECT_TRUE(host->probe());
  const auto device = host->open_device(0);
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->id(), (DeviceId{DeviceKind::kHost, 0}));
  for (const int index : {1, -1}) {
    const auto none = host->open_device(index);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weightcast
