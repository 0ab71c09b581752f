// Which conversion of a device turns one dtype into another.
// Pure functions, any thread.
#pragma once

#include "weightcast/device/device.h"
#include "weightcast/plan/dtype.h"

namespace weightcast {

/// Requires: `to` is `from`, or what `cast_dtype` makes of it.
Conversion conversion_between(DType from, DType to);

}  // namespace weightcast
