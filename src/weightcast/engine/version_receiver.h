// One version at a receiving rank: leases buckets, checks, agrees, applies.
// One thread, the session's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weightcast/control/group.h"
#include "weightcast/engine/memory_meter.h"
#include "weightcast/engine/session.h"
#include "weightcast/pipeline/bucket_receiver.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast {

/// What a version uses of its session; all of it outlives the version.
struct ReceiveContext {
  Group& group;
  BucketSource& source;
  Stream& stream;
  MemoryMeter& meter;
  Duration timeout;
  bool& version_open;  ///< set while the version lives
  bool& failure_told;  ///< set once the caller knows of the group's failure
};

class VersionReceiver final : public Receiver {
 public:
  VersionReceiver(const ReceiveContext& context, const Begin& begin,
                  std::optional<std::vector<TensorMeta>> announced);
  ~VersionReceiver() override;
  VersionReceiver(const VersionReceiver&) = delete;
  VersionReceiver& operator=(const VersionReceiver&) = delete;

  uint64_t version() const override { return version_; }
  bool metas_announced() const override { return metas_announced_; }
  const std::vector<TensorMeta>& metas() const override { return receiver_.metas(); }
  Result<std::optional<BucketLease>> next() override;
  Status copy_out(const Piece& piece, MemoryView destination) override;
  Status verify(const Piece& piece) override;
  Result<TransferStats> finish(const std::function<Status()>& apply) override;

 private:
  Status check_open();
  Status after_take(Status taken);
  Error fail(const Error& error);
  void say_ready();
  Status check_complete() const;
  Status check_end(const End& end) const;
  template <typename Wanted>
  Result<Wanted> next_announcement();
  Result<End> end();
  Result<Commit> await_commit();
  RankStats own_stats();

  ReceiveContext context_;
  uint64_t sequence_;
  uint64_t version_;
  bool metas_announced_;
  BucketReceiver receiver_;
  bool ready_ = false;
  bool over_ = false;
};

}  // namespace weightcast
