// Reads the buckets that a publisher on the same host hands out, where they lie.
// One thread, the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/mapping.h"
#include "weightcast/control/group.h"
#include "weightcast/handoff/link.h"
#include "weightcast/handoff/segment.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast {

class Consumer final : public BucketSource {
 public:
  /// Receives the descriptors over `link` and maps the segment read-only. `expected` is what the
  /// group agreed on; anything else is `kCorruption`. `group` outlives the consumer. Errors also:
  /// `kNoResource`, `kDeadline`, `kPeerLost` when the publisher hung up, the failure of the group.
  static Result<std::unique_ptr<Consumer>> attach(const Fd& link, const SegmentGeometry& expected,
                                                  Group& group, Deadline deadline);

  [[nodiscard]] size_t num_slots() const override;
  Result<FilledBucket> next(Deadline deadline) override;
  Status release(uint64_t number) override;

 private:
  struct Parts {
    uint64_t reader = 0;
    Mapping segment;
    Mapping release_words;
    EventFd filled;
    EventFd released;
  };
  Consumer(const SegmentGeometry& geometry, Group& group, Parts parts);
  static Result<Parts> map_parts(const SegmentGeometry& geometry, LinkMessage message);

  [[nodiscard]] const SegmentHeader& header() const;
  [[nodiscard]] ReleaseWords& release_words() const;
  Status wait_published(size_t slot, Deadline deadline);
  Result<BucketHeader> read_header(size_t slot);
  Status make_resident(size_t slot, uint64_t size);

  SegmentGeometry geometry_;
  Group& group_;
  Parts parts_;
  std::vector<uint64_t> held_;      ///< number of the bucket held in each slot, or 0
  std::vector<uint64_t> resident_;  ///< bytes of each slot that have pages
  std::vector<std::byte> encoded_;  ///< the header being decoded, out of the publisher's reach
  uint64_t next_number_ = 1;
};

}  // namespace weightcast
