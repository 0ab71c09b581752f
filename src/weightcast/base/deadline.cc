#include "weightcast/base/deadline.h"

#include <algorithm>

namespace weightcast {

Clock::duration Deadline::remaining() const {
  return std::max(time_ - Clock::now(), Clock::duration::zero());
}

int Deadline::poll_timeout_ms() const {
  const auto left = std::chrono::ceil<Duration>(remaining());
  return static_cast<int>(std::min<Duration>(left, std::chrono::hours(1)).count());
}

}  // namespace weightcast
