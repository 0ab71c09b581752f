// The thread that owns a group's sockets: it polls them, commands of callers, watched sockets and
// timers, and never blocks on anything else.
// One thread starts and ends it.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <poll.h>

#include "weightcast/base/deadline.h"
#include "weightcast/control/outbox.h"

namespace weightcast {

/// What the control thread does for one kind of rank. All calls come from that thread.
class ControlRole {
 public:
  virtual ~ControlRole() = default;
  /// Descriptors that become readable when `drain` has something to do.
  [[nodiscard]] virtual std::vector<int> fds() const = 0;
  /// Handles everything that has arrived; false if there was nothing. `polled`: the descriptors of
  /// `fds` in their order; whoever sent something since the last call looks without being told.
  virtual bool drain(std::span<const pollfd> polled) = 0;
  virtual void run(Command command) = 0;
  /// When an announcement or a reply last came or went: more are likely to follow soon.
  [[nodiscard]] virtual Clock::time_point exchanged_at() const = 0;
  /// When `tick` wants to be called next.
  [[nodiscard]] virtual Clock::time_point due() const = 0;
  virtual void tick(Clock::time_point now) = 0;
  /// This process itself did not run for `pause`, so nobody's silence counts for that time.
  virtual void resumed(Clock::duration pause) = 0;
  /// A watched socket of `rank` has hung up.
  virtual void hung_up(int rank) = 0;
  /// Says `leave`; only `drain` and `left` come after it.
  virtual void leave() = 0;
  /// Whether nobody is left who has not answered `leave`.
  [[nodiscard]] virtual bool left() const = 0;
};

class ControlThread {
 public:
  /// `outbox` outlives the thread, at whose end the role is destroyed.
  ControlThread(std::unique_ptr<ControlRole> role, Outbox& outbox);
  /// Ends the thread, which flushes its sockets for up to a second.
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

 private:
  Outbox& outbox_;
  std::jthread thread_;
};

/// Heartbeats in a heartbeat timeout, so that one lost in a busy moment is no loss of a rank.
inline constexpr int kHeartbeatsPerTimeout = 5;
/// How often a rank says that it is there.
Clock::duration heartbeat_interval(Duration heartbeat_timeout);

}  // namespace weightcast
