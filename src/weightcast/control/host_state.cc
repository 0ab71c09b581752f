#include "weightcast/control/host_state.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/base/check.h"
#include "weightcast/base/size.h"

namespace weightcast {

HostState::HostState(EventFd failure_fd, const PeerInfo& self, int world_size, Outbox& outbox)
    : world_size_(world_size),
      failure_fd_(std::move(failure_fd)),
      outbox_(outbox),
      peers_{self},
      gathered_(world_size == 1),
      arrived_at_(Clock::now()) {}

Status HostState::wait_gathered(Duration patience) {
  const MutexLock lock(mutex_);
  arrived_at_ = Clock::now();
  while (!gathered_ && !failure_) {
    if (changed_.wait_until(mutex_, Deadline::at(arrived_at_ + patience))) continue;
    if (gathered_ || failure_ || Clock::now() < arrived_at_ + patience) continue;
    return Error(
        Code::kDeadline,
        fmt::format("{} of {} members have not joined: none arrived for {}",
                    world_size_ - 1 - num_arrived_, world_size_ - 1, format_duration(patience)));
  }
  if (failure_) return *failure_;
  return {};
}

std::vector<PeerInfo> HostState::peers() const {
  const MutexLock lock(mutex_);
  return peers_;
}

Result<uint64_t> HostState::open_exchange(bool survivors) {
  const MutexLock lock(mutex_);
  WEIGHTCAST_CHECK(gathered_ && !exchange_);
  if (!failure_ && !survivors && !departed_.empty()) fail(departed_.begin()->second, true);
  if (failure_) return *failure_;
  Exchange exchange;
  exchange.number = ++num_exchanges_;
  exchange.survivors = survivors;
  exchange.slots.resize(static_cast<size_t>(world_size_ - 1));
  exchange.moved_at = Clock::now();
  for (const auto& [rank, error] : departed_) {
    if (rank > 0) exchange.slots[static_cast<size_t>(rank - 1)] = error;
  }
  exchange_ = std::move(exchange);
  return exchange_->number;
}

bool HostState::complete() const {
  return std::ranges::all_of(exchange_->slots, [](const auto& slot) { return slot.has_value(); });
}

Error HostState::missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < exchange_->slots.size(); ++i) {
    if (!exchange_->slots[i]) names.push_back(describe(peers_[i + 1]));
  }
  return Error(Code::kDeadline, fmt::format("no reply and no progress while {}: {}", step(),
                                            fmt::join(names, ", ")));
}

Result<std::vector<Reply>> HostState::wait_replies(Duration patience) {
  const MutexLock lock(mutex_);
  WEIGHTCAST_CHECK(exchange_ && !exchange_->survivors);
  std::optional<Error> error;
  while (!error && !complete()) {
    const Clock::time_point end = exchange_->moved_at + patience;
    if (failure_) {
      error = failure_;
    } else if (!changed_.wait_until(mutex_, Deadline::at(end)) && !complete() && !failure_ &&
               Clock::now() >= exchange_->moved_at + patience) {
      error = missing();
    }
  }
  std::vector<Reply> replies;
  for (auto& slot : exchange_->slots) {
    if (!error) replies.push_back(std::move(**slot));
  }
  exchange_.reset();
  if (error) return *error;
  return replies;
}

std::vector<Result<Reply>> HostState::wait_survivors(Duration patience) {
  const MutexLock lock(mutex_);
  WEIGHTCAST_CHECK(exchange_ && exchange_->survivors);
  while (!complete() && Clock::now() < exchange_->moved_at + patience) {
    changed_.wait_until(mutex_, Deadline::at(exchange_->moved_at + patience));
  }
  std::vector<Result<Reply>> replies;
  for (size_t i = 0; i < exchange_->slots.size(); ++i) {
    auto& slot = exchange_->slots[i];
    replies.push_back(slot ? std::move(*slot) : Result<Reply>(missing().on_rank(int(i) + 1)));
  }
  exchange_.reset();
  if (deferred_) fail(deferred_->first, deferred_->second);
  deferred_.reset();
  return replies;
}

void HostState::abort(const Error& cause) {
  const MutexLock lock(mutex_);
  const bool too_late = exchange_ && exchange_->survivors;
  if (!too_late) {
    fail(cause.on_rank(0), false);
  } else if (!deferred_) {
    deferred_ = {cause.on_rank(0), false};
  }
}

std::optional<Error> HostState::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

uint64_t HostState::epoch() const {
  const MutexLock lock(mutex_);
  return epoch_;
}

Status HostState::renew() {
  const MutexLock lock(mutex_);
  if (!departed_.empty()) return departed_.begin()->second;
  if (!failure_) return {};
  failure_.reset();
  failure_fd_.drain();
  ++epoch_;
  outbox_.push(NewEpoch{epoch_});
  return {};
}

Clock::time_point HostState::last_progress() const {
  const MutexLock lock(mutex_);
  return last_progress_;
}

void HostState::arrived() {
  const MutexLock lock(mutex_);
  last_progress_ = Clock::now();
  ++num_arrived_;
  progress_.note(outbox_);
  arrived_at_ = Clock::now();
  changed_.notify_all();
}

void HostState::gathered(std::vector<PeerInfo> peers) {
  const MutexLock lock(mutex_);
  peers_ = std::move(peers);
  gathered_ = true;
  last_progress_ = Clock::now();
  step_.store("waiting for the next version", std::memory_order_relaxed);
  changed_.notify_all();
}

void HostState::replied(uint64_t exchange, int rank, const Reply& reply) {
  {
    const MutexLock lock(mutex_);
    last_progress_ = Clock::now();
    if (!exchange_ || exchange_->number != exchange) return;
    auto& slot = exchange_->slots[static_cast<size_t>(rank - 1)];
    if (slot) return;
    slot = reply;
    exchange_->moved_at = last_progress_;
    if (!complete()) return;
  }
  // Without the mutex, which the caller takes first when it wakes.
  changed_.notify_all();
}

void HostState::progressed(int rank) {
  const MutexLock lock(mutex_);
  last_progress_ = Clock::now();
  if (!exchange_ || rank < 1 || exchange_->slots[static_cast<size_t>(rank - 1)]) return;
  exchange_->moved_at = Clock::now();
}

void HostState::aborted(int rank, const Abort& abort) {
  const MutexLock lock(mutex_);
  if (abort.epoch != epoch_) return;
  const Error cause = abort.cause.on_rank(rank);
  if (!exchange_ || !exchange_->survivors) return fail(cause, false);
  auto& slot = exchange_->slots[static_cast<size_t>(rank - 1)];
  if (!slot) slot = cause;
  if (!deferred_) deferred_ = {cause, false};
  changed_.notify_all();
}

void HostState::lost(const Error& error) {
  const MutexLock lock(mutex_);
  depart(error, true);
}

void HostState::left(const Error& error) {
  const MutexLock lock(mutex_);
  depart(error, !gathered_);
}

void HostState::depart(const Error& error, bool always_fails) {
  const int rank = error.rank();
  departed_.emplace(rank, error);
  auto* slot = exchange_ && rank > 0 ? &exchange_->slots[static_cast<size_t>(rank - 1)] : nullptr;
  const bool awaited = slot != nullptr && !slot->has_value();
  if (exchange_ && exchange_->survivors) {
    if (awaited) *slot = error;
    if (always_fails && !deferred_) deferred_ = {error, true};
    changed_.notify_all();
  } else if (always_fails || awaited) {
    fail(error, true);
  }
}

void HostState::fail(const Error& cause, bool is_loss) {
  const bool first = !failure_;
  if (first) {
    failure_ = cause;
    failure_fd_.signal();
    changed_.notify_all();
  }
  // Later losses are told too: they mean that no epoch follows.
  if (first || is_loss) outbox_.push(Spread{Abort{epoch_, cause, is_loss}});
}

}  // namespace weightcast
