#include "weightcast/base/check.h"
#include "weightcast/device/device.h"

namespace weightcast {

ConversionWidths widths(Conversion conversion) {
  switch (conversion) {
    case Conversion::kNone: return {1, 1};
    case Conversion::kF32ToBf16:
    case Conversion::kF32ToF16: return {4, 2};
    case Conversion::kF64ToF32: return {8, 4};
    case Conversion::kF64ToBf16:
    case Conversion::kF64ToF16: return {8, 2};
  }
  check_failed("a known conversion", __FILE__, __LINE__);
}

}  // namespace weightcast
