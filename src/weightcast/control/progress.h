// Counts what a rank moves, so that the others know that it is not stuck.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "weightcast/base/deadline.h"
#include "weightcast/control/outbox.h"

namespace weightcast {

class Progress {
 public:
  [[nodiscard]] uint64_t value() const { return value_.load(std::memory_order_relaxed); }

  /// Counts, and has the others told soon where nothing was told for a while.
  void note(Outbox& outbox) {
    value_.fetch_add(1, std::memory_order_relaxed);
    const Clock::rep now = Clock::now().time_since_epoch().count();
    Clock::rep told = told_at_.load(std::memory_order_relaxed);
    if (now - told < kQuietTime.count()) return;
    if (told_at_.compare_exchange_strong(told, now, std::memory_order_relaxed)) {
      outbox.push(TellProgress{});
    }
  }

 private:
  static constexpr Clock::duration kQuietTime = std::chrono::milliseconds(100);

  // Counters that order nothing: the outbox's mutex does.
  std::atomic<uint64_t> value_ = 0;
  std::atomic<Clock::rep> told_at_ = 0;
};

}  // namespace weightcast
