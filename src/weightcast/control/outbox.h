// What callers ask the control thread to do, in order.
// Thread-safe; what says so is the control thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <variant>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/sync.h"
#include "weightcast/control/wire.h"

namespace weightcast {

/// Root: send an announcement, encoded but for its number, to every member that is there.
struct Announce {
  std::vector<std::byte> bytes;
  uint64_t exchange = 0;  ///< what replies to it belong to
};
/// Member: send a reply to the root.
struct Answer {
  Reply reply;
  uint64_t epoch = 0;
  uint64_t answers = 0;
};
/// Tell the others about a failure.
struct Spread {
  Abort abort;
};
/// From now on a hang-up of `fd` means that `rank` is lost.
struct WatchSocket {
  Fd fd;
  int rank = -1;
};
/// This rank has gone on to `epoch`.
struct NewEpoch {
  uint64_t epoch = 0;
};
/// There is progress that the others should hear of before the next heartbeat is due.
struct TellProgress {};

using Command = std::variant<Announce, Answer, Spread, WatchSocket, NewEpoch, TellProgress>;

class Outbox {
 public:
  static Result<std::unique_ptr<Outbox>> create();

  /// Adds a command and wakes the control thread. Does not block.
  void push(Command command);
  /// Asks the control thread to end once it has done everything before.
  void stop();

  // The control thread.

  /// Everything that was added since the last call, in order.
  std::vector<Command> take();
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  /// Whether there is something to take, or the thread is to end.
  [[nodiscard]] bool has_news() const {
    return news_.load(std::memory_order_seq_cst) || stopping();
  }
  /// Announces that the thread is going to sleep on `fd`; false if there is news already.
  bool fall_asleep();
  /// Ends that; `signalled`: `fd` was readable.
  void wake_up(bool signalled);
  /// Readable when there is news for a thread that sleeps.
  [[nodiscard]] int fd() const { return wake_.fd(); }

 private:
  explicit Outbox(EventFd wake) : wake_(std::move(wake)) {}
  void tell();

  EventFd wake_;
  std::atomic<bool> stopping_ = false;  // `stop` stores, `stopping` loads
  // Whoever has news stores `news_` and then looks at `asleep_`; the thread stores `asleep_` and
  // then looks at `news_`: sequentially consistent, so that one of them sees the other.
  std::atomic<bool> news_ = false;
  std::atomic<bool> asleep_ = false;
  Mutex mutex_;
  std::vector<Command> commands_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace weightcast
