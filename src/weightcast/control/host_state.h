// What the root's callers and its control thread share.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/sync.h"
#include "weightcast/control/outbox.h"
#include "weightcast/control/progress.h"
#include "weightcast/control/wire.h"

namespace weightcast {

class HostState {
 public:
  /// `outbox` outlives it.
  HostState(EventFd failure_fd, const PeerInfo& self, int world_size, Outbox& outbox);

  // Callers.

  Status wait_gathered(Duration patience);
  std::vector<PeerInfo> peers() const;
  /// Opens an exchange with everybody or, with `survivors`, with whoever is left, and returns its
  /// number. Errors: the failure of the group.
  Result<uint64_t> open_exchange(bool survivors);
  /// Waits until every rank has replied and closes the exchange.
  Result<std::vector<Reply>> wait_replies(Duration patience);
  std::vector<Result<Reply>> wait_survivors(Duration patience);
  void abort(const Error& cause);
  std::optional<Error> failure() const;
  int failure_fd() const { return failure_fd_.fd(); }
  uint64_t epoch() const;
  Status renew();
  Clock::time_point last_progress() const;
  void set_step(const char* step) { step_.store(step, std::memory_order_relaxed); }

  void note_progress() { progress_.note(outbox_); }

  // The control thread. Ranks are -1 as long as they are not assigned.

  const char* step() const { return step_.load(std::memory_order_relaxed); }
  uint64_t progress() const { return progress_.value(); }
  void arrived();
  void gathered(std::vector<PeerInfo> peers);
  void replied(uint64_t exchange, int rank, const Reply& reply);
  void progressed(int rank);
  void aborted(int rank, const Abort& abort);
  void lost(const Error& error);
  void left(const Error& error);

 private:
  struct Exchange {
    uint64_t number = 0;
    bool survivors = false;
    std::vector<std::optional<Result<Reply>>> slots;  // by rank - 1
    Clock::time_point moved_at;
  };

  bool complete() const WEIGHTCAST_REQUIRES(mutex_);
  void fail(const Error& cause, bool is_loss) WEIGHTCAST_REQUIRES(mutex_);
  void depart(const Error& error, bool always_fails) WEIGHTCAST_REQUIRES(mutex_);
  Error missing() const WEIGHTCAST_REQUIRES(mutex_);

  const int world_size_;
  const EventFd failure_fd_;
  Outbox& outbox_;
  Progress progress_;
  std::atomic<const char*> step_ = "the group gathered";  // for messages only, orders nothing

  mutable Mutex mutex_;
  CondVar changed_;
  Clock::time_point last_progress_ WEIGHTCAST_GUARDED_BY(mutex_) = Clock::now();
  std::vector<PeerInfo> peers_ WEIGHTCAST_GUARDED_BY(mutex_);
  bool gathered_ WEIGHTCAST_GUARDED_BY(mutex_) = false;
  int num_arrived_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  Clock::time_point arrived_at_ WEIGHTCAST_GUARDED_BY(mutex_);
  uint64_t epoch_ WEIGHTCAST_GUARDED_BY(mutex_) = 1;
  std::optional<Error> failure_ WEIGHTCAST_GUARDED_BY(mutex_);
  std::map<int, Error> departed_ WEIGHTCAST_GUARDED_BY(mutex_);  // who was lost or has left
  uint64_t num_exchanges_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  std::optional<Exchange> exchange_ WEIGHTCAST_GUARDED_BY(mutex_);
  /// What happened after the point of no return: a failure only once the survivors have replied.
  std::optional<std::pair<Error, bool>> deferred_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace weightcast
