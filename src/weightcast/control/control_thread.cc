#include "weightcast/control/control_thread.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <poll.h>
#include <sched.h>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

using std::chrono::milliseconds;

// A gap this long in the thread's own running is a stopped or starved process, not scheduling.
constexpr Clock::duration kPause = milliseconds(50);
// About the time of a round trip between two hosts, or of a few wake-ups on one.
constexpr Clock::duration kSpinTime = std::chrono::microseconds(200);

// How long a rank that leaves waits for the others to have heard it.
constexpr Clock::duration kLeaveTimeout = milliseconds(500);
constexpr int kLeavePollMs = 5;

class Loop {
 public:
  Loop(std::unique_ptr<ControlRole> role, Outbox& outbox)
      : role_(std::move(role)), outbox_(outbox) {
    polled_.push_back({outbox_.fd(), POLLIN, 0});
    // What came before this thread did may not be told again.
    for (const int fd : role_->fds()) polled_.push_back({fd, POLLIN, POLLIN});
    first_watched_ = polled_.size();
  }

  void run() {
    while (!outbox_.stopping()) {
      work();
      wait();
    }
    work();
    leave();
  }

 private:
  // Stays until everybody has answered. A socket that is closed with bytes unread resets its
  // connection, and the other end may then lose what it has not read: the reason of a failure.
  void leave() {
    role_->leave();
    const Deadline deadline = Deadline::after(kLeaveTimeout);
    while (!role_->left() && !deadline.expired()) {
      if (drain()) continue;
      const std::span fds = role_fds();
      ::poll(fds.data(), fds.size(), kLeavePollMs);
    }
  }

  std::span<pollfd> role_fds() { return std::span(polled_).subspan(1, first_watched_ - 1); }

  bool drain() {
    const bool any = role_->drain(role_fds());
    for (pollfd& fd : role_fds()) fd.revents = 0;
    return any;
  }

  // Does everything there is to do. Sockets must be drained before the thread sleeps, because
  // their descriptors tell of news only once (zmq_getsockopt(3), ZMQ_FD).
  void work() {
    bool busy = true;
    while (busy) {
      busy = run_commands();
      busy = drain() || busy;
      const Clock::time_point now = Clock::now();
      if (now >= role_->due()) {
        role_->tick(now);
        busy = true;
      }
    }
  }

  bool run_commands() {
    std::vector<Command> commands = outbox_.take();
    for (Command& command : commands) {
      if (auto* watch = std::get_if<WatchSocket>(&command)) {
        polled_.push_back({watch->fd.get(), POLLRDHUP, 0});
        watched_.push_back(std::move(*watch));
      } else {
        role_->run(std::move(command));
      }
    }
    return !commands.empty();
  }

  int poll(int timeout_ms) {
    const int ready = ::poll(polled_.data(), polled_.size(), timeout_ms);
    WEIGHTCAST_CHECK(ready >= 0 || errno == EINTR || errno == ENOMEM);
    return ready;
  }

  // In the middle of an exchange sleeping and being woken would take longer than what is waited
  // for: looks for news for a moment, and lets everybody else run in between.
  int spin() {
    const Clock::time_point end = role_->exchanged_at() + kSpinTime;
    int ready = 0;
    while (ready <= 0 && !outbox_.has_news() && Clock::now() < end) {
      ::sched_yield();
      ready = poll(0);
    }
    return ready;
  }

  int sleep(Clock::time_point due) {
    if (!outbox_.fall_asleep()) return 0;
    const int ready = poll(Deadline::at(due).poll_timeout_ms());
    outbox_.wake_up(polled_.front().revents != 0);
    return ready;
  }

  void wait() {
    const Clock::time_point due = role_->due();
    int ready = spin();
    if (ready <= 0 && !outbox_.has_news()) ready = sleep(due);
    const Clock::time_point now = Clock::now();
    const Clock::duration pause = now - std::max(due, woken_);
    if (pause > kPause) role_->resumed(pause);
    woken_ = now;
    if (ready > 0) look_at_watched();
  }

  void look_at_watched() {
    for (size_t i = watched_.size(); i-- > 0;) {
      const auto polled = polled_.begin() + static_cast<ptrdiff_t>(first_watched_ + i);
      if (polled->revents == 0) continue;
      const int rank = watched_[i].rank;
      polled_.erase(polled);
      watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(i));
      role_->hung_up(rank);
    }
  }

  std::unique_ptr<ControlRole> role_;
  Outbox& outbox_;
  std::vector<pollfd> polled_;  // the outbox, the role's, then `watched_`
  std::vector<WatchSocket> watched_;
  size_t first_watched_ = 0;
  Clock::time_point woken_ = Clock::now();
};

}  // namespace

ControlThread::ControlThread(std::unique_ptr<ControlRole> role, Outbox& outbox) : outbox_(outbox) {
  thread_ = std::jthread(
      [role = std::move(role), &outbox]() mutable { Loop(std::move(role), outbox).run(); });
}

ControlThread::~ControlThread() {
  outbox_.stop();
  thread_.join();
}

Clock::duration heartbeat_interval(Duration heartbeat_timeout) {
  return std::clamp<Clock::duration>(Clock::duration(heartbeat_timeout) / kHeartbeatsPerTimeout,
                                     milliseconds(20), milliseconds(2000));
}

}  // namespace weightcast
