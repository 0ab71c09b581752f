// Where the slots lie and who else reads them. handoff/ implements both sides on the host.
// Interfaces; each says which thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/device/memory.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {

/// The writing side: equal slots, used in turn.
class SlotStore {
 public:
  virtual ~SlotStore() = default;
  [[nodiscard]] virtual size_t num_slots() const = 0;
  /// The bytes of slot `index`, as long as the store lives.
  [[nodiscard]] virtual MemoryView payload(size_t index) const = 0;

  /// Caller's thread. Blocks until every live reader has released what was last published in the
  /// slot. Errors: `kDeadline` naming the rank that holds it; the failure of the group.
  virtual Status wait_free(size_t index, Deadline deadline) = 0;
  /// Caller's thread. Makes the first `size` bytes of the slot resident. Errors: `kNoResource`.
  virtual Status make_resident(size_t index, uint64_t size) = 0;
  /// Communication thread. Hands the slot, whose payload is complete, to every reader. Does not
  /// block.
  virtual Status publish(size_t index, const BucketHeader& header) = 0;
};

/// A bucket that arrived. The payload stays valid until it is released.
struct FilledBucket {
  uint64_t number = 0;  ///< counts over the life of the source; what `release` takes
  BucketHeader header;
  ConstMemoryView payload;  ///< `header.used_size` bytes
};

/// The reading side. One thread.
class BucketSource {
 public:
  virtual ~BucketSource() = default;
  /// Buckets that may be held at once.
  [[nodiscard]] virtual size_t num_slots() const = 0;
  /// Blocks until the next bucket is there. Errors: `kDeadline`; the failure of the group;
  /// `kCorruption` when the header does not decode; `kInvalidArgument` when the caller itself holds
  /// every slot, so that waiting would never end.
  virtual Result<FilledBucket> next(Deadline deadline) = 0;
  /// Gives the slot of bucket `number` back. Never blocks. In any order.
  virtual Status release(uint64_t number) = 0;
};

}  // namespace weightcast
