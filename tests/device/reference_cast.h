// Narrowing by arithmetic on doubles, written without a look at the loops that it checks.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weightcast/device/device.h"

namespace weightcast::testing {

/// Source bytes for `conversion`: every exponent and sign, exact values, ties and their neighbours
/// on both sides of every rounding place, subnormals, infinities, NaNs with many payloads, and
/// random ones.
std::vector<std::byte> interesting_source(Conversion conversion);

/// What the elements of `source` become.
std::vector<std::byte> reference_cast(Conversion conversion, ConstMemoryView source);

}  // namespace weightcast::testing
