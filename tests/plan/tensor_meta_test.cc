#include "weightcast/plan/tensor_meta.h"

#include <limits>

#include <gtest/gtest.h>

namespace weightcast {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

TEST(TensorMeta, SizeIsElementsTimesBits) {
  EXPECT_EQ(byte_size({"a", DType::kF32, {2, 3}}), 24u);
  EXPECT_EQ(byte_size({"scalar", DType::kI64, {}}), 8u);
  EXPECT_EQ(byte_size({"empty", DType::kF32, {4, 0, 7}}), 0u);
  EXPECT_EQ(byte_size({"packed", DType::kF4, {3, 2}}), 3u);
  EXPECT_EQ(byte_size({"six", DType::kF6E3M2, {4}}), 3u);
  EXPECT_EQ(byte_size({"large", DType::kBf16, {3, uint64_t{1} << 33}}), uint64_t{3} << 34);
}

TEST(TensorMeta, ProductsThatOverflowAreRefused) {
  EXPECT_EQ(checked_size({"a", DType::kU8, {kMaxTensorSize}}).value(), kMaxTensorSize);
  EXPECT_EQ(checked_size({"a", DType::kF4, {2, kMaxTensorSize}}).value(), kMaxTensorSize);
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{kMaxTensorSize + 1},
                                             {kHuge},
                                             {kHuge, kHuge},
                                             {uint64_t{1} << 32, uint64_t{1} << 32},
                                             {uint64_t{1} << 63, 2},
                                             {3, kHuge / 3 + 1}}) {
    const auto size = checked_size({"big", DType::kU8, shape});
    ASSERT_FALSE(size.has_value());
    EXPECT_EQ(size.error().code(), Code::kBadInput);
    EXPECT_NE(size.error().message().find("big"), std::string::npos);
  }
}

TEST(TensorMeta, AZeroDimensionMakesAnyShapeEmpty) {
  EXPECT_EQ(checked_size({"a", DType::kF64, {kHuge, kHuge, 0}}).value(), 0u);
  EXPECT_EQ(checked_size({"a", DType::kF64, {0, kHuge, kHuge}}).value(), 0u);
}

TEST(TensorMeta, PackedElementsMustFillTheirLastByte) {
  EXPECT_FALSE(checked_size({"a", DType::kF4, {3}}).has_value());
  EXPECT_FALSE(checked_size({"a", DType::kF6E2M3, {2}}).has_value());
}

TEST(TensorMeta, CheckRefusesBadNamesDTypesAndShapes) {
  EXPECT_TRUE(check({"层.ä.😀", DType::kU8, {1}}).has_value());
  EXPECT_TRUE(check({std::string(kMaxNameSize, 'x'), DType::kU8, {1}}).has_value());
  EXPECT_TRUE(check({"a", DType::kU8, std::vector<uint64_t>(kMaxDimensions, 1)}).has_value());
  EXPECT_FALSE(check({"", DType::kU8, {1}}).has_value());
  EXPECT_FALSE(check({std::string(kMaxNameSize + 1, 'x'), DType::kU8, {1}}).has_value());
  EXPECT_FALSE(check({"\xff", DType::kU8, {1}}).has_value());
  EXPECT_FALSE(check({"a", DType{0}, {1}}).has_value());
  EXPECT_FALSE(check({"a", DType{200}, {1}}).has_value());
  EXPECT_FALSE(check({"a", DType::kU8, std::vector<uint64_t>(kMaxDimensions + 1, 1)}).has_value());
  EXPECT_FALSE(check({"a", DType::kU8, {kHuge}}).has_value());
}

TEST(TensorMeta, DescribeNamesDTypeAndShape) {
  EXPECT_EQ(describe({"model.embed", DType::kBf16, {32000, 4096}}),
            "model.embed BF16 [32000, 4096]");
  EXPECT_EQ(describe({"a\n", DType::kF8E4M3, {}}), "a\\x0a F8_E4M3 []");
}

}  // namespace
}  // namespace weightcast
