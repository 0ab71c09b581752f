// A group of one process for tests of what stands on a group: it fails when told to, and counts
// progress.
// Thread-safe, as a group is.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/sync.h"
#include "weightcast/control/group.h"

namespace weightcast::testing {

/// Announcements and replies go nowhere: `exchange` and `next_announcement` return `kUnsupported`.
class FakeGroup final : public Group {
 public:
  explicit FakeGroup(int rank = 0, int world_size = 2);

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  uint64_t epoch() const override { return epoch_; }
  std::vector<PeerInfo> peers() const override { return {}; }
  const GroupConfig& config() const override { return config_; }
  const Ticket& ticket() const override { return ticket_; }
  Status gather(Duration) override { return {}; }

  Result<std::vector<Reply>> exchange(const Announcement&, Duration) override;
  std::vector<Result<Reply>> exchange_with_survivors(const Announcement&, Duration) override;
  Result<Announcement> next_announcement(Duration) override;
  void reply(const Reply&) override {}

  void abort(const Error& cause) override;
  std::optional<Error> failure() const override;
  int failure_fd() const override { return failed_.fd(); }
  Status renew() override;

  void note_progress() override { num_progress_.fetch_add(1, std::memory_order_relaxed); }
  Clock::time_point last_progress() const override { return {}; }
  void set_step(const char*) override {}
  Status watch(int, int) override { return {}; }

  /// How often progress was noted.
  uint64_t num_progress() const { return num_progress_.load(std::memory_order_relaxed); }

 private:
  const int rank_;
  const int world_size_;
  GroupConfig config_;
  Ticket ticket_;
  EventFd failed_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<uint64_t> num_progress_{0};
  mutable Mutex mutex_;
  std::optional<Error> failure_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace weightcast::testing
