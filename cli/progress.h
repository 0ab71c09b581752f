// A bar that shows how much of a version has moved, on a terminal only.
// One thread.
#pragma once

#include <cstdint>
#include <string>

#include "weightcast/base/deadline.h"

namespace weightcast {

/// Draws on standard error, at most every tenth of a second; silent where that is no terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, uint64_t total);
  /// Leaves the finished line if everything moved, else wipes it.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `size` more bytes have moved.
  void add(uint64_t size);

 private:
  void draw() const;

  std::string label_;
  uint64_t total_;
  uint64_t done_ = 0;
  bool shown_;
  Clock::time_point started_;
  Clock::time_point drawn_;
};

}  // namespace weightcast
