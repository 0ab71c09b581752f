// The queue behind a stream that works later: an adversary of code that forgets to wait.
// Thread-safe, but for `run`, which one thread calls once. Shared by the stream that fills it and
// by the marks of events, which may outlive the stream.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/base/sync.h"

namespace weightcast {

/// What delays the work of one stream, always in the same way for one seed. One thread.
class Adversary {
 public:
  explicit Adversary(uint64_t seed) : random_(seed) {}
  /// Whether the next piece of work waits until somebody waits for it: the first does, later ones
  /// three times in four. So code that does not wait fails however slow its own thread is.
  bool holds();
  /// Blocks for up to 200 us, mostly not at all.
  void pause();

 private:
  std::mt19937_64 random_;
  bool first_ = true;
};

class WorkQueue {
 public:
  using Work = std::function<void(Adversary&)>;

  explicit WorkQueue(uint64_t seed) : adversary_(seed) {}

  /// Enqueues `work`; returns its number, counted from 1.
  uint64_t push(Work work);
  /// The number of the work enqueued last, 0 before the first.
  uint64_t last() const;
  /// Blocks until the work up to `number` is done. Errors: `kDeadline`.
  Status wait_done(uint64_t number, Deadline deadline);

  /// Does the work in order until the queue is closed and empty.
  void run();
  /// Nothing is pushed from now on, and nothing held back.
  void close();

 private:
  bool take(Work& work);

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Work> pending_ WEIGHTCAST_GUARDED_BY(mutex_);
  uint64_t pushed_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  uint64_t done_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;      // invariant: done_ <= pushed_
  uint64_t demanded_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;  // the highest number waited for
  bool closed_ WEIGHTCAST_GUARDED_BY(mutex_) = false;
  Adversary adversary_;  // of the thread in `run`
};

/// A place in a queue. Values: copyable. The default one has been reached.
struct Mark {
  // Shared, as the stream, the event and streams that wait for it end in no fixed order.
  std::shared_ptr<WorkQueue> queue;
  uint64_t number = 0;

  /// Errors: `kDeadline`.
  [[nodiscard]] Status wait(Deadline deadline) const;
};

}  // namespace weightcast
