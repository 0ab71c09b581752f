#include "weightcast/base/fd.h"

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "weightcast/base/check.h"

namespace weightcast {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<EventFd> EventFd::create() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return system_error(errno, "eventfd");
  return EventFd(std::move(fd));
}

void EventFd::signal() const {
  const uint64_t one = 1;
  // EAGAIN means that the counter is full, and so the waiter is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
}

void EventFd::drain() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(fd_.get(), &count, sizeof count);
}

Status check_descriptors_left(int count) {
  std::vector<Fd> opened;
  while (opened.size() < static_cast<size_t>(count)) {
    opened.emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (opened.back().valid()) continue;
    if (errno != EMFILE && errno != ENFILE) return system_error(errno, "eventfd");
    return Error(Code::kNoResource, "fewer than " + std::to_string(count) +
                                        " descriptors are left: raise `ulimit -n`, or close some");
  }
  return {};
}

Result<size_t> wait_readable(std::span<const int> fds, Deadline deadline) {
  std::array<pollfd, 8> polled{};
  WEIGHTCAST_CHECK(fds.size() <= polled.size());
  for (size_t i = 0; i < fds.size(); ++i) polled[i] = {fds[i], POLLIN, 0};
  while (true) {
    const int ready = ::poll(polled.data(), fds.size(), deadline.poll_timeout_ms());
    if (ready < 0 && errno != EINTR) return system_error(errno, "poll");
    for (size_t i = 0; ready > 0 && i < fds.size(); ++i) {
      if (polled[i].revents != 0) return i;
    }
    if (deadline.expired()) return Error(Code::kDeadline, "nothing arrived in time");
  }
}

}  // namespace weightcast
