// A point in time after which a wait gives up. Every call that may block takes one.
// Values: copyable, any thread.
#pragma once

#include <chrono>

namespace weightcast {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::milliseconds;

class Deadline {
 public:
  /// `duration` from now; a negative duration has already passed.
  static Deadline after(Clock::duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline at(Clock::time_point time) { return Deadline(time); }

  [[nodiscard]] Clock::time_point time() const { return time_; }
  [[nodiscard]] bool expired() const { return Clock::now() >= time_; }
  /// Time left, never negative.
  [[nodiscard]] Clock::duration remaining() const;
  /// Time left as poll(2) wants it: milliseconds rounded up, at most an hour.
  [[nodiscard]] int poll_timeout_ms() const;

  friend auto operator<=>(const Deadline&, const Deadline&) = default;

 private:
  explicit Deadline(Clock::time_point time) : time_(time) {}
  Clock::time_point time_;
};

/// Seconds between two points in time.
inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace weightcast
