#include "weightcast/control/member_state.h"

#include <utility>

#include <fmt/format.h>

#include "weightcast/base/size.h"

namespace weightcast {

MemberState::MemberState(EventFd failure_fd, Outbox& outbox)
    : failure_fd_(std::move(failure_fd)), outbox_(outbox), moved_at_(Clock::now()) {}

Result<Welcome> MemberState::wait_welcome(Duration patience) {
  const MutexLock lock(mutex_);
  moved_at_ = Clock::now();
  while (!welcome_ && !failure_) {
    const Clock::time_point end = moved_at_ + patience;
    if (changed_.wait_until(mutex_, Deadline::at(end)) || moved_at_ + patience > end) continue;
    if (welcome_ || failure_) continue;
    return Error(Code::kDeadline,
                 fmt::format("joined the root, but not every rank has: nobody new arrived for {}",
                             format_duration(patience)));
  }
  if (welcome_) return *welcome_;
  return *failure_;
}

// A commit that arrived before the failure is past the point of no return (docs/design.md,
// "Control") and must be seen.
bool MemberState::deliverable() const {
  return !queue_.empty() &&
         (!failure_ || std::holds_alternative<Commit>(queue_.front().announcement));
}

Result<Announcement> MemberState::next_announcement(Duration patience) {
  const MutexLock lock(mutex_);
  moved_at_ = Clock::now();
  while (!deliverable()) {
    if (!failure_ && root_left_) fail(*root_left_);
    if (failure_) return *failure_;
    const Clock::time_point end = moved_at_ + patience;
    if (changed_.wait_until(mutex_, Deadline::at(end)) || moved_at_ + patience > end) continue;
    if (deliverable() || failure_ || root_left_) continue;
    return Error(Code::kDeadline,
                 fmt::format("the root announced nothing and made no progress for {} while {}",
                             format_duration(patience), step()));
  }
  Numbered next = std::move(queue_.front());
  queue_.pop_front();
  to_answer_ = next.number;
  return std::move(next.announcement);
}

void MemberState::reply(const Reply& reply) {
  Answer answer{.reply = reply};
  {
    const MutexLock lock(mutex_);
    answer.epoch = epoch_;
    answer.answers = std::exchange(to_answer_, 0);
  }
  // After `renew` nothing of the old epoch is to be answered.
  if (answer.answers != 0) outbox_.push(std::move(answer));
}

void MemberState::abort(const Error& cause, int rank) {
  const MutexLock lock(mutex_);
  if (failure_) return;
  fail(cause.on_rank(rank));
  outbox_.push(Spread{Abort{epoch_, *failure_}});
}

std::optional<Error> MemberState::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

uint64_t MemberState::epoch() const {
  const MutexLock lock(mutex_);
  return epoch_;
}

Status MemberState::renew() {
  const MutexLock lock(mutex_);
  if (loss_) return *loss_;
  if (root_left_) return *root_left_;
  if (!failure_) return {};
  failure_.reset();
  failure_fd_.drain();
  queue_.clear();
  to_answer_ = 0;
  ++epoch_;
  outbox_.push(NewEpoch{epoch_});
  return {};
}

Clock::time_point MemberState::last_progress() const {
  const MutexLock lock(mutex_);
  return last_progress_;
}

void MemberState::welcomed(const Welcome& welcome) {
  const MutexLock lock(mutex_);
  welcome_ = welcome;
  last_progress_ = Clock::now();
  step_.store("waiting for the next version", std::memory_order_relaxed);
  changed_.notify_all();
}

void MemberState::refused(const Error& error) {
  const MutexLock lock(mutex_);
  if (!welcome_) welcome_ = error;
  changed_.notify_all();
}

void MemberState::progressed() {
  const MutexLock lock(mutex_);
  moved_at_ = last_progress_ = Clock::now();
}

void MemberState::announced(uint64_t epoch, uint64_t number, Announcement announcement) {
  {
    const MutexLock lock(mutex_);
    if (epoch != epoch_ || failure_) return;
    queue_.push_back(Numbered{number, std::move(announcement)});
    moved_at_ = last_progress_ = Clock::now();
  }
  // Without the mutex, which the caller takes first when it wakes.
  changed_.notify_all();
}

void MemberState::aborted(const Abort& abort) {
  const MutexLock lock(mutex_);
  if (abort.lost && !loss_) loss_ = abort.cause;
  if (abort.lost || abort.epoch == epoch_) fail(abort.cause);
}

void MemberState::lost(const Error& error) {
  const MutexLock lock(mutex_);
  if (!loss_) loss_ = error;
  fail(error);
}

void MemberState::left(const Error& error) {
  const MutexLock lock(mutex_);
  root_left_ = error;
  if (!welcome_) fail(error);
  changed_.notify_all();
}

void MemberState::fail(const Error& cause) {
  if (failure_) return;
  failure_ = cause;
  std::erase_if(queue_, [](const Numbered& item) {
    return !std::holds_alternative<Commit>(item.announcement);
  });
  failure_fd_.signal();
  changed_.notify_all();
}

}  // namespace weightcast
