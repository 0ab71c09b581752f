#include "fake_group.h"

namespace weightcast::testing {
namespace {

Error unsupported() { return Error(Code::kUnsupported, "a fake group has no members"); }

}  // namespace

FakeGroup::FakeGroup(int rank, int world_size)
    : rank_(rank), world_size_(world_size), failed_(EventFd::create().value()) {}

Result<std::vector<Reply>> FakeGroup::exchange(const Announcement&, Duration) {
  return unsupported();
}

std::vector<Result<Reply>> FakeGroup::exchange_with_survivors(const Announcement&, Duration) {
  return {};
}

Result<Announcement> FakeGroup::next_announcement(Duration) { return unsupported(); }

void FakeGroup::abort(const Error& cause) {
  const MutexLock lock(mutex_);
  if (failure_) return;
  failure_ = cause.on_rank(rank_);
  failed_.signal();
}

std::optional<Error> FakeGroup::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

Status FakeGroup::renew() {
  const MutexLock lock(mutex_);
  failure_.reset();
  failed_.drain();
  epoch_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace weightcast::testing
