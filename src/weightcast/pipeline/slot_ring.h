// The order in which slots are packed and moved: the caller fills them in turn, the communication
// thread empties the queue behind it.
// Two threads: each member says whose.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/base/sync.h"
#include "weightcast/device/device.h"
#include "weightcast/pipeline/slot_store.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {

/// A bucket on its way from the caller to the communication thread. One belongs to each slot and is
/// used again and again, so that packing allocates nothing.
struct PackedBucket {
  size_t slot = 0;
  BucketHeader header;  ///< without digests, which the communication thread adds
  /// XXH3-64 of the blocks of each extent, one after the other; valid once `packed` is done. Its
  /// capacity is never outgrown: copies in flight point into it.
  std::vector<uint64_t> block_digests;
  std::vector<bool> completes_tensor;  ///< for each extent
  std::unique_ptr<Event> packed;
};

class SlotRing {
 public:
  /// `store` outlives the ring.
  static Result<std::unique_ptr<SlotRing>> create(SlotStore& store, Device& device,
                                                  uint64_t bucket_size);

  /// Caller. The next slot's bucket, emptied. Blocks until it has moved and every reader released
  /// it. Errors: `kDeadline`, the failure of the group, the communication thread's error.
  Result<PackedBucket*> acquire(Deadline deadline);
  /// Caller. The bucket that was acquired last is packed, or will be when its event is done.
  void hand_over();
  /// Caller. Blocks until everything handed over has moved. Errors: as `acquire`.
  Status wait_moved(Deadline deadline);

  /// Communication thread. The next bucket that was handed over, or null when the ring is closed.
  PackedBucket* next_packed();
  /// Communication thread. The bucket from `next_packed` has moved.
  void mark_moved();
  /// Communication thread. Nothing will move any more; every caller gets `error`.
  void fail(const Error& error);

  /// Any thread. Ends the communication thread's wait.
  void close();

 private:
  SlotRing(SlotStore& store, std::vector<PackedBucket> buckets)
      : store_(store), buckets_(std::move(buckets)) {}
  Status wait_for_moves(uint64_t count, Deadline deadline);

  SlotStore& store_;
  std::vector<PackedBucket> buckets_;
  uint64_t num_acquired_ = 0;  ///< caller only

  Mutex mutex_;
  CondVar changed_;
  uint64_t num_packed_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  uint64_t num_moved_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  bool closed_ WEIGHTCAST_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ WEIGHTCAST_GUARDED_BY(mutex_);
};

}  // namespace weightcast
