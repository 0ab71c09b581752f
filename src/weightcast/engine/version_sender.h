// One version at the root: packs, ends, commits.
// One thread, the session's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weightcast/control/group.h"
#include "weightcast/engine/memory_meter.h"
#include "weightcast/engine/session.h"
#include "weightcast/pipeline/bucket_sender.h"
#include "weightcast/pipeline/comm_thread.h"
#include "weightcast/pipeline/slot_ring.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast {

/// What a version uses of its session; all of it outlives the version.
struct SendContext {
  Group& group;
  SlotRing& ring;
  SlotStore& store;
  CommThread& comm_thread;
  Stream& stream;
  MemoryMeter& meter;
  const HostOptions& options;
  bool& version_open;  ///< set while the version lives
  bool& failure_told;  ///< set once the caller knows of the group's failure
};

class VersionSender final : public Sender {
 public:
  /// Requires: every rank is ready for `begin`.
  VersionSender(const SendContext& context, const Begin& begin,
                std::optional<std::vector<TensorMeta>> announced);
  ~VersionSender() override;
  VersionSender(const VersionSender&) = delete;
  VersionSender& operator=(const VersionSender&) = delete;

  Status push(const TensorMeta& meta, ConstMemoryView source) override;
  Status push(const TensorMeta& meta, TensorReader& reader) override;
  Result<TransferStats> finish() override;

 private:
  Status check_open() const;
  Status after_push(Status pushed);
  Error fail(const Error& error);
  Result<TransferStats> end();
  Result<TransferStats> commit(TransferStats stats);
  Hash128 digest(const MoveReport& report) const;
  RankStats own_stats(const MoveReport& report);

  SendContext context_;
  uint64_t sequence_;
  uint64_t version_;
  BucketSender sender_;
  Clock::time_point started_;
  bool over_ = false;
};

}  // namespace weightcast
