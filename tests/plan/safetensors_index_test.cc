#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;

void expect_refused(std::string_view json, std::string_view part) {
  const auto shards = parse_safetensors_index(json);
  ASSERT_FALSE(shards.has_value()) << json;
  EXPECT_EQ(shards.error().code(), Code::kBadInput);
  EXPECT_THAT(shards.error().message(), HasSubstr(std::string(part))) << json;
}

TEST(SafetensorsIndex, ShardsComeInTheOrderOfNames) {
  const auto shards = parse_safetensors_index(
      R"({"metadata":{"total_size":8,"x":[1,-2,3.5,null,true,{"weight_map":{"no":1}}]},
          "weight_map":{"b":"2.safetensors","ä":"1.safetensors","a":"1.safetensors"}})");
  ASSERT_TRUE(shards.has_value()) << shards.error().message();
  ASSERT_EQ(shards->size(), 3u);
  EXPECT_EQ((*shards)[0].tensor, "a");
  EXPECT_EQ((*shards)[0].file, "1.safetensors");
  EXPECT_EQ((*shards)[1].tensor, "b");
  EXPECT_EQ((*shards)[1].file, "2.safetensors");
  EXPECT_EQ((*shards)[2].tensor, "ä");
}

TEST(SafetensorsIndex, FilesElsewhereAreRefused) {
  for (const char* file : {"../x", "/etc/passwd", "d/x", "", ".", "..", "x\\u0000"}) {
    expect_refused(std::string(R"({"weight_map":{"w":")") + file + "\"}}", "tensor w: ");
  }
}

TEST(SafetensorsIndex, DuplicatesAreRefused) {
  expect_refused(R"({"weight_map":{"w":"a","w":"a"}})", "tensor w comes twice");
  expect_refused(R"({"weight_map":{"w":"a"},"weight_map":{}})", "weight_map comes twice");
}

TEST(SafetensorsIndex, WhatIsNoIndexIsRefused) {
  expect_refused("", "not JSON");
  expect_refused("[]", "not JSON");
  expect_refused("{", "not JSON at byte");
  expect_refused("{}", "no weight_map");
  expect_refused(R"({"":{"weight_map":{"a":"b"}}})", "no weight_map");
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"x\"", "[]"}) {
    expect_refused(std::string(R"({"weight_map":)") + value + "}", "weight_map: ");
  }
  for (const char* value : {"1", "-1", "1.5", "null", "true", "{}", "[]"}) {
    expect_refused(std::string(R"({"weight_map":{"w":)") + value + "}}", "tensor w: ");
  }
  expect_refused(R"({"weight_map":{"":"a"}})", "its name has 0 bytes");
  expect_refused(R"({"weight_map":{")" + std::string(kMaxNameSize + 1, 'x') + R"(":"a"}})",
                 "its name has 16385 bytes");
}

TEST(SafetensorsIndex, NestingIsLimited) {
  const auto nested = [](size_t depth) {
    return R"({"x":)" + std::string(depth, '[') + std::string(depth, ']') +
           R"(,"weight_map":{"w":"f"}})";
  };
  EXPECT_TRUE(parse_safetensors_index(nested(63)).has_value());
  expect_refused(nested(64), "nested deeper than 64");
  expect_refused(R"({"x":)" + std::string(1'000'000, '['), "nested deeper than 64");
}

}  // namespace
}  // namespace weightcast
