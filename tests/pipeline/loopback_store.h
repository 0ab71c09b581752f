// Slots in this process, written by one side and read by the other: what handoff/ does between
// processes, for tests of the pipeline alone.
// Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "weightcast/base/sync.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast::testing {

class LoopbackStore final : public SlotStore, public BucketSource {
 public:
  LoopbackStore(size_t num_slots, uint64_t bucket_size);

  size_t num_slots() const override { return slots_.size(); }
  MemoryView payload(size_t index) const override;
  Status wait_free(size_t index, Deadline deadline) override;
  Status make_resident(size_t index, uint64_t size) override;
  Status publish(size_t index, const BucketHeader& header) override;

  Result<FilledBucket> next(Deadline deadline) override;
  Status release(uint64_t number) override;

 private:
  struct Slot {
    std::vector<std::byte> payload;
    BucketHeader header;
    bool busy = false;
  };

  Mutex mutex_;
  CondVar changed_;
  mutable std::vector<Slot> slots_;
  uint64_t num_published_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  uint64_t num_read_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
};

}  // namespace weightcast::testing
