// Reads the buckets that a publisher on the same host hands out, where they lie.
// One thread, the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/mapping.h"
#include "weightcast/control/group.h"
#include "weightcast/handoff/segment.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast {

class Consumer final : public BucketSource {
 public:
  /// Receives the descriptors over `link` and maps the segment read-only. `expected` is what the
  /// group agreed on; anything else is `kCorruption`. `group` outlives the consumer.
  static Result<std::unique_ptr<Consumer>> attach(const Fd& link, const SegmentGeometry& expected,
                                                  Group& group, Deadline deadline);

  size_t num_slots() const override;
  Result<FilledBucket> next(Deadline deadline) override;
  Status release(uint64_t number) override;

 private:
  Consumer(const SegmentGeometry& geometry, Group& group);

  SegmentGeometry geometry_;
  Group& group_;
  Mapping segment_;
  Mapping release_words_;
  EventFd filled_;
  EventFd released_;
  std::vector<uint64_t> held_;      ///< number of the bucket held in each slot, or 0
  std::vector<uint64_t> resident_;  ///< bytes of each slot that have pages
  uint64_t next_number_ = 1;
};

}  // namespace weightcast
