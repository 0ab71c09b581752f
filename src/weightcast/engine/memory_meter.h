// How much memory a session adds to its process: anonymous and shared pages beyond what was there
// before.
// One thread.
#pragma once

#include <cstdint>

#include "weightcast/base/deadline.h"

namespace weightcast {

class MemoryMeter {
 public:
  /// What is resident now is the tensors and everything else that is not ours.
  MemoryMeter();

  /// Starts a new peak.
  void reset() { peak_ = 0; }
  /// Looks at the process, at most every 20 ms; cheap enough for every bucket.
  void sample();
  /// Bytes beyond the start, the most that a sample saw since `reset`; takes a last sample.
  uint64_t peak();

 private:
  void look();

  uint64_t start_;
  uint64_t peak_ = 0;
  Clock::time_point next_look_;
};

}  // namespace weightcast
