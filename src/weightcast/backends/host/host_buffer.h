// Host memory as a device's buffer. One owner.
#pragma once

#include <cstddef>
#include <memory>

#include "weightcast/base/result.h"
#include "weightcast/device/device.h"

namespace weightcast {

/// Zeroed memory, page-aligned, made resident by the first access. Errors: `kNoResource`.
Result<std::unique_ptr<Buffer>> allocate_host_buffer(size_t size);

}  // namespace weightcast
