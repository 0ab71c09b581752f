// The host's copy loops, and the short calibration that picks the best one for this machine.
// Thread-safe: pure functions, and a choice that is made once a process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/device/device.h"
#include "weightcast/device/memory.h"

namespace weightcast {

/// A way to copy `size` bytes between buffers that do not overlap; any alignment, any size.
struct CopyKernel {
  std::string_view name;  ///< for example `avx2_nt_2_pages`
  void (*copy)(std::byte* destination, const std::byte* source, size_t size);
};

/// Every kernel that this CPU can run, plain `memcpy` first.
std::span<const CopyKernel> copy_kernels();

struct CalibrationRow {
  std::string_view kernel;
  double bandwidth_gbps;  ///< GB/s of payload, the best of a few passes over cold memory
};

struct Calibration {
  CopyKernel winner;
  std::vector<CalibrationRow> rows;
  double seconds;  ///< what the calibration itself took
};

/// The kernel that won on this machine. The first call calibrates, which takes a few milliseconds
/// and 16 MiB that are freed again; WEIGHTCAST_COPY_KERNEL=name chooses instead of measuring.
const Calibration& calibration();

/// Copies, converts and digests as `copy` says, with the winner. Does not block, has no deadline.
void host_copy(const Copy& copy);
/// XXH3-64 of each block of `bytes`. Requires: one entry a block.
void host_digest(ConstMemoryView bytes, std::span<uint64_t> block_digests);

}  // namespace weightcast
