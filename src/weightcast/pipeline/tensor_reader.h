// A tensor whose bytes are not in memory yet.
// One thread, the sender's.
#pragma once

#include <cstdint>

#include "weightcast/base/result.h"
#include "weightcast/device/memory.h"

namespace weightcast {

class TensorReader {
 public:
  virtual ~TensorReader() = default;
  /// Fills `destination` with the tensor's bytes from `offset` on. Errors end the version on every
  /// rank.
  virtual Status read(uint64_t offset, MemoryView destination) = 0;
};

}  // namespace weightcast
