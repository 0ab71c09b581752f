// SIGINT, SIGTERM and SIGHUP: an orderly end instead of a sudden one.
// A thread of its own waits for the signals, so that a wait of the main thread ends too.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

#include "weightcast/base/result.h"
#include "weightcast/base/sync.h"
#include "weightcast/engine/session.h"

namespace weightcast {

/// Made first in `main`, before any other thread, since threads inherit what it blocks.
///
/// While an `InterruptScope` is alive, a first signal aborts the scope's session, and the program
/// ends by itself; without one, and for a second signal, the process ends at once.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// The signal that arrived, or 0. Thread-safe.
  [[nodiscard]] int signal() const { return signal_.load(std::memory_order_acquire); }
  /// Errors: that a signal arrived. For loops that wait for nothing.
  [[nodiscard]] Status check() const;
  /// Ends the process by the signal that arrived, as whoever started it expects; else returns.
  void end_if_signalled() const;

 private:
  friend class InterruptScope;
  void watch(const std::stop_token& stop);
  void handle(int number);
  Session* enter(Session* session);
  void leave(Session* outer);
  static Error interruption(int number);

  sigset_t signals_;
  std::atomic<int> signal_{0};  ///< release in `handle`, acquire in `signal`
  Mutex mutex_;
  CondVar idle_;
  int scopes_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  Session* session_ WEIGHTCAST_GUARDED_BY(mutex_) = nullptr;
  bool aborting_ WEIGHTCAST_GUARDED_BY(mutex_) = false;  ///< the thread is in `Session::abort`
  std::jthread thread_;
};

/// Between its two ends there is something to tidy up, and, where given, a session to abort. The
/// session outlives the scope.
class InterruptScope {
 public:
  explicit InterruptScope(Interrupts& interrupts, Session* session = nullptr);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  Interrupts& interrupts_;
  Session* outer_;
};

}  // namespace weightcast
