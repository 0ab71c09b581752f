#include "weightcast/pipeline/conversion.h"

#include "weightcast/base/check.h"

namespace weightcast {

Conversion conversion_between(DType from, DType to) {
  if (from == to) return Conversion::kNone;
  if (from == DType::kF32 && to == DType::kBf16) return Conversion::kF32ToBf16;
  if (from == DType::kF32 && to == DType::kF16) return Conversion::kF32ToF16;
  if (from == DType::kF64 && to == DType::kF32) return Conversion::kF64ToF32;
  if (from == DType::kF64 && to == DType::kBf16) return Conversion::kF64ToBf16;
  WEIGHTCAST_CHECK(from == DType::kF64 && to == DType::kF16);
  return Conversion::kF64ToF16;
}

}  // namespace weightcast
