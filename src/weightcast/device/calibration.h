// The measurement behind `calibration()`.
// Pure but for the clock; any thread.
#pragma once

#include <string_view>

#include "weightcast/device/host_copy.h"

namespace weightcast {

/// Whether a block is hashed before it is copied, while it is read from memory, or after, while it
/// lies in the cache; and how many bytes are copied at a time. Which is better differs by machine.
struct DigestOrder {
  bool digest_first;
  size_t group_size;
};

/// Copies as `order` says, and stores the digest of each block.
void copy_and_digest(CopyKernel kernel, DigestOrder order, const Copy& copy);

struct MeasuredChoice {
  Calibration calibration;
  DigestOrder order;
};

/// Measures, or takes the kernel that `wanted` names. Empty or unknown (which is logged): measures.
MeasuredChoice choose_kernel(std::string_view wanted);

/// The choice of this process, made by the first caller.
const MeasuredChoice& chosen_kernel();

}  // namespace weightcast
