// Which loops this CPU can run, and which casts belong to which copy.
// Pure functions, thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "weightcast/device/device.h"
#include "weightcast/device/host_copy.h"
#include "weightcast/device/kernel_set.h"

namespace weightcast {

/// The instruction sets of this CPU, the plain one first and the widest last.
std::span<const KernelSet* const> kernel_sets();

/// The kernels worth measuring: those that every machine has, and the widest instruction set's.
std::vector<CopyKernel> calibration_candidates();

/// A cast through the cache and one past it.
struct CastPair {
  CastLoop cached;
  CastLoop streamed;
};
/// The casts that go with `kernel`: of the same instruction set and walk, or of the widest set in
/// one line where the kernel has neither. Requires: `conversion` is not `kNone`.
CastPair casts_for(std::string_view kernel, Conversion conversion);

}  // namespace weightcast
