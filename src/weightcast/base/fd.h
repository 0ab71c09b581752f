// Descriptors of the operating system: owned, signalled, waited for.
// Fd and EventFd: one owner; `EventFd::signal` is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"

namespace weightcast {

/// Owns one descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// A counter that wakes whoever polls it; may be shared with another process by passing `fd()`.
class EventFd {
 public:
  static Result<EventFd> create();
  /// Takes over a descriptor that another process made.
  static EventFd adopt(Fd fd) { return EventFd(std::move(fd)); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Wakes the waiter. Never blocks, never fails on a live descriptor.
  void signal() const;
  /// Takes what was signalled so far, so that the next wait blocks again. Never blocks.
  void drain() const;

 private:
  explicit EventFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// Whether this process may open `count` more descriptors. Errors: `kNoResource`, naming the limit.
Status check_descriptors_left(int count);

/// Blocks until one of `fds` is readable or hung up and returns its index, the lowest if several
/// are; `kDeadline` when `deadline` passed first. At most 8 descriptors.
Result<size_t> wait_readable(std::span<const int> fds, Deadline deadline);

}  // namespace weightcast
