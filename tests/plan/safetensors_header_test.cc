#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weightcast/plan/safetensors.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;

// An error of `kBadInput` whose message names `part`.
void expect_refused(std::string_view json, uint64_t data_size, std::string_view part) {
  const auto entries = parse_safetensors_header(json, data_size);
  ASSERT_FALSE(entries.has_value()) << json;
  EXPECT_EQ(entries.error().code(), Code::kBadInput);
  EXPECT_THAT(entries.error().message(), HasSubstr(std::string(part))) << json;
}

TEST(SafetensorsHeader, EntriesComeInTheOrderOfTheirBytes) {
  const auto entries = parse_safetensors_header(
      R"({"late":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},
          "early":{"data_offsets":[0,3],"shape":[3],"dtype":"U8"},
          "z2":{"dtype":"F16","shape":[0],"data_offsets":[3,3]},
          "z1":{"dtype":"F16","shape":[4,0],"data_offsets":[3,3]},
          "__metadata__":{"format":"pt"},
          "scalar":{"dtype":"BOOL","shape":[],"data_offsets":[11,12]}}  )",
      12);
  ASSERT_TRUE(entries.has_value()) << entries.error().message();
  const std::vector<TensorMeta> expected = {{"early", DType::kU8, {3}},
                                            {"z2", DType::kF16, {0}},
                                            {"z1", DType::kF16, {4, 0}},
                                            {"late", DType::kF32, {2}},
                                            {"scalar", DType::kBool, {}}};
  const std::vector<uint64_t> offsets = {0, 3, 3, 3, 11};
  ASSERT_EQ(entries->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*entries)[i].meta, expected[i]);
    EXPECT_EQ((*entries)[i].offset, offsets[i]);
  }
}

TEST(SafetensorsHeader, NoTensorsAreAHeaderToo) {
  EXPECT_TRUE(parse_safetensors_header("{}", 0).value().empty());
  EXPECT_TRUE(parse_safetensors_header(R"({"__metadata__":{}}   )", 0).value().empty());
  expect_refused("{}", 1, "the data have 1 bytes");
}

TEST(SafetensorsHeader, WhatIsNotJsonIsRefused) {
  expect_refused("", 0, "not JSON");
  expect_refused("[]", 0, "not JSON");
  expect_refused(" {}", 0, "not JSON");
  expect_refused("{", 0, "not JSON at byte");
  expect_refused("{}x", 0, "not JSON at byte");
  expect_refused("{}{}", 0, "not JSON at byte");
  expect_refused(std::string_view("{}\0garbage", 10), 0, "zero byte at byte 2");
  expect_refused("{\"\xed\xa0\x80\":{}}", 0, "not JSON at byte");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},})", 1, "not JSON");
  expect_refused(std::string("{\"a\":") + std::string(1'000'000, '['), 0, "tensor a: an array");
  expect_refused("{\"" + std::string(1'000'000, 'x'), 0, "not JSON at byte");
}

TEST(SafetensorsHeader, EveryKindOfValueInTheWrongPlaceIsRefused) {
  for (const char* value : {"1", "-1", "1.5", "null", "true", "\"x\"", "[]", "1e400"}) {
    expect_refused(std::string(R"({"a":)") + value + "}", 0, "");
  }
  for (const char* value : {"1", "-1", "1.5", "null", "true", "{}", "[]"}) {
    expect_refused(std::string(R"({"a":{"dtype":)") + value + "}}", 0, "tensor a: ");
    expect_refused(std::string(R"({"__metadata__":{"k":)") + value + "}}", 0, "__metadata__: ");
  }
  for (const char* value : {"1", "null", "{}", "[[]]", "[{}]", "[\"1\"]", "[true]", "[-1]", "[1.0]",
                            "[18446744073709551616]"}) {
    expect_refused(std::string(R"({"a":{"shape":)") + value + "}}", 0, "tensor a: ");
    expect_refused(std::string(R"({"a":{"data_offsets":)") + value + "}}", 0, "tensor a: ");
  }
}

TEST(SafetensorsHeader, DuplicatesAreRefused) {
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                     "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                 2, "tensor a comes twice");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, "tensor a: dtype comes twice");
  expect_refused(R"({"a":{"shape":[],"shape":[]}})", 0, "tensor a: shape comes twice");
  expect_refused(R"({"a":{"data_offsets":[0,0],"data_offsets":[0,0]}})", 0,
                 "tensor a: data_offsets comes twice");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ comes twice");
}

TEST(SafetensorsHeader, MissingAndUnknownKeysAreNamed) {
  expect_refused(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "tensor a: no dtype");
  expect_refused(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "tensor a: no shape");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1]}})", 1, "tensor a: no data_offsets");
  expect_refused(R"({"a":{"dtype":"Q3"}})", 1, "tensor a: unknown dtype Q3");
  expect_refused(R"({"a":{"stride":[1]}})", 1, "tensor a: unknown key stride");
  expect_refused(R"({"a":{"data_offsets":[0]}})", 1, "tensor a: data_offsets are not two");
  expect_refused(R"({"a":{"data_offsets":[0,1,2]}})", 1, "tensor a: more than two");
  expect_refused(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "empty name");
}

std::string one_tensor(std::string_view shape, std::string_view offsets) {
  return R"({"a":{"dtype":"F32","shape":[)" + std::string(shape) + R"(],"data_offsets":[)" +
         std::string(offsets) + "]}}";
}

TEST(SafetensorsHeader, ShapeTimesDTypeMustBeTheLength) {
  EXPECT_TRUE(parse_safetensors_header(one_tensor("2,3", "0,24"), 24).has_value());
  expect_refused(one_tensor("2,3", "0,23"), 24, "data_offsets 0 to 23 are not the 24 bytes");
  expect_refused(one_tensor("2,3", "24,0"), 24, "data_offsets 24 to 0");
  expect_refused(one_tensor("4294967296,4294967296", "0,0"), 0, "larger than");
  expect_refused(one_tensor("18446744073709551615,18446744073709551615", "0,4"), 4, "larger than");
  std::string shape = "1";
  for (size_t i = 1; i < kMaxDimensions; ++i) shape += ",1";
  EXPECT_TRUE(parse_safetensors_header(one_tensor(shape, "0,4"), 4).has_value());
  expect_refused(one_tensor(shape + ",1", "0,4"), 4, "tensor a: more than 64 dimensions");
}

std::string two_tensors(std::string_view first, std::string_view second) {
  return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[)" + std::string(first) +
         R"(]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" + std::string(second) + "]}}";
}

TEST(SafetensorsHeader, TensorsCoverTheDataWithoutOverlapOrHole) {
  EXPECT_TRUE(parse_safetensors_header(two_tensors("0,4", "4,8"), 8).has_value());
  expect_refused(two_tensors("0,4", "2,6"), 6, "tensor b: at offset 2 it overlaps a");
  expect_refused(two_tensors("0,4", "0,4"), 4, "overlaps");
  expect_refused(two_tensors("0,4", "5,9"), 9, "tensor b: at offset 5 it leaves a hole after a");
  expect_refused(two_tensors("1,5", "5,9"), 9, "tensor a: at offset 1 it leaves a hole");
  expect_refused(two_tensors("0,4", "4,8"), 9, "ends at offset 8, but the data have 9 bytes");
}

TEST(SafetensorsHeader, OffsetsBehindTheDataAreOutOfRange) {
  expect_refused(two_tensors("0,4", "4,8"), 7, "tensor b: 4 bytes at offset 4 are out of range");
  expect_refused(two_tensors("0,4", "18446744073709551611,18446744073709551615"), 8,
                 "out of range");
}

TEST(SafetensorsHeader, WrittenHeadersReadBackTheSame) {
  std::vector<TensorMeta> metas;
  for (const DType dtype : dtypes()) {
    metas.push_back({"layer \"" + std::string(name(dtype)) + "\"\\", dtype, {3, 8}});
  }
  metas.push_back({"层.ä.😀\n\x01\x7f", DType::kF32, {0, 5}});
  metas.push_back({std::string("zero\0inside", 11), DType::kU8, {}});
  metas.push_back({std::string(kMaxNameSize, 'n'), DType::kI64, {}});
  metas.push_back({"large", DType::kBf16, {uint64_t{1} << 33, 3}});
  uint64_t size = 0;
  for (const TensorMeta& meta : metas) size += byte_size(meta);
  const std::string header = make_safetensors_header(metas);
  ASSERT_EQ(header.size() % 8, 0u);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<uint8_t>(header[i])} << (8 * i);
  EXPECT_EQ(length, header.size() - 8);
  const auto entries = parse_safetensors_header(std::string_view(header).substr(8), size);
  ASSERT_TRUE(entries.has_value()) << entries.error().message();
  ASSERT_EQ(entries->size(), metas.size());
  for (size_t i = 0; i < metas.size(); ++i) EXPECT_EQ((*entries)[i].meta, metas[i]);
}

}  // namespace
}  // namespace weightcast
