// What a member's callers and its control thread share.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "weightcast/base/fd.h"
#include "weightcast/base/sync.h"
#include "weightcast/control/outbox.h"
#include "weightcast/control/progress.h"
#include "weightcast/control/wire.h"

namespace weightcast {

class MemberState {
 public:
  /// `outbox` outlives it.
  MemberState(EventFd failure_fd, Outbox& outbox);

  // Callers.

  /// Waits for the answer to the hello. `patience`: how long no new member may arrive.
  Result<Welcome> wait_welcome(Duration patience);
  Result<Announcement> next_announcement(Duration patience);
  void reply(const Reply& reply);
  void abort(const Error& cause, int rank);
  std::optional<Error> failure() const;
  int failure_fd() const { return failure_fd_.fd(); }
  uint64_t epoch() const;
  Status renew();
  Clock::time_point last_progress() const;
  void set_step(const char* step) { step_.store(step, std::memory_order_relaxed); }
  void note_progress() { progress_.note(outbox_); }

  // The control thread.

  const char* step() const { return step_.load(std::memory_order_relaxed); }
  uint64_t progress() const { return progress_.value(); }
  void welcomed(const Welcome& welcome);
  void refused(const Error& error);
  void progressed();
  void announced(uint64_t epoch, uint64_t number, Announcement announcement);
  void aborted(const Abort& abort);
  /// The root is gone: lost, or in order.
  void lost(const Error& error);
  void left(const Error& error);

 private:
  struct Numbered {
    uint64_t number = 0;
    Announcement announcement;
  };

  void fail(const Error& cause) WEIGHTCAST_REQUIRES(mutex_);
  bool deliverable() const WEIGHTCAST_REQUIRES(mutex_);

  const EventFd failure_fd_;
  Outbox& outbox_;
  Progress progress_;
  std::atomic<const char*> step_ = "joining";  // for messages only, orders nothing

  mutable Mutex mutex_;
  CondVar changed_;
  Clock::time_point last_progress_ WEIGHTCAST_GUARDED_BY(mutex_) = Clock::now();
  std::optional<Result<Welcome>> welcome_ WEIGHTCAST_GUARDED_BY(mutex_);
  uint64_t epoch_ WEIGHTCAST_GUARDED_BY(mutex_) = 1;
  std::optional<Error> failure_ WEIGHTCAST_GUARDED_BY(mutex_);
  std::optional<Error> loss_ WEIGHTCAST_GUARDED_BY(mutex_);       // no epoch follows
  std::optional<Error> root_left_ WEIGHTCAST_GUARDED_BY(mutex_);  // nothing more will come
  std::deque<Numbered> queue_ WEIGHTCAST_GUARDED_BY(mutex_);
  uint64_t to_answer_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;  // number of the announcement, or 0
  Clock::time_point moved_at_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace weightcast
