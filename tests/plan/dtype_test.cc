#include "weightcast/plan/dtype.h"

#include <gtest/gtest.h>

namespace weightcast {
namespace {

TEST(DType, CodesCountFromOneInOrder) {
  uint8_t code = 0;
  for (const DType dtype : dtypes()) EXPECT_EQ(static_cast<uint8_t>(dtype), ++code);
  EXPECT_EQ(code, 23);
}

TEST(DType, EveryNameLeadsBackToItsDType) {
  for (const DType dtype : dtypes()) EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  EXPECT_EQ(dtype_from_name("BF16"), DType::kBf16);
  EXPECT_EQ(dtype_from_name("F8_E4M3"), DType::kF8E4M3);
}

TEST(DType, UnknownNamesAndCodesAreNothing) {
  for (const char* text : {"", "bf16", "F33", "F8_E4M3FN", "BF16 "}) {
    EXPECT_EQ(dtype_from_name(text), std::nullopt) << text;
  }
  EXPECT_EQ(dtype_from_code(0), std::nullopt);
  EXPECT_EQ(dtype_from_code(24), std::nullopt);
  EXPECT_EQ(dtype_from_code(255), std::nullopt);
  EXPECT_EQ(dtype_from_code(23), DType::kF4);
}

TEST(DType, BitsAreThoseOfTheFormat) {
  EXPECT_EQ(bits(DType::kBool), 8u);
  EXPECT_EQ(bits(DType::kBf16), 16u);
  EXPECT_EQ(bits(DType::kI64), 64u);
  EXPECT_EQ(bits(DType::kC64), 64u);
  EXPECT_EQ(bits(DType::kC128), 128u);
  EXPECT_EQ(bits(DType::kF8E8M0), 8u);
  EXPECT_EQ(bits(DType::kF6E2M3), 6u);
  EXPECT_EQ(bits(DType::kF4), 4u);
}

TEST(DType, CastNarrowsFloatsAndTouchesNothingElse) {
  EXPECT_EQ(cast_dtype(DType::kF32, DType::kBf16), DType::kBf16);
  EXPECT_EQ(cast_dtype(DType::kF64, DType::kF32), DType::kF32);
  EXPECT_EQ(cast_dtype(DType::kF16, DType::kBf16), DType::kF16);
  EXPECT_EQ(cast_dtype(DType::kBf16, DType::kF32), DType::kBf16);
  for (const DType dtype : dtypes()) {
    if (is_castable(dtype)) continue;
    EXPECT_EQ(cast_dtype(dtype, DType::kBf16), dtype);
  }
  EXPECT_FALSE(is_castable(DType::kI64));
  EXPECT_FALSE(is_castable(DType::kC64));
  EXPECT_FALSE(is_castable(DType::kF8E5M2));
}

}  // namespace
}  // namespace weightcast
