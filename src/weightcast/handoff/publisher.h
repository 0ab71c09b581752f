// Owns the slots of one epoch and lets the other processes of this host map them.
// Two threads: `publish` on the communication thread, everything else on the caller's.
#pragma once

#include <memory>
#include <vector>

#include "weightcast/base/fd.h"
#include "weightcast/base/mapping.h"
#include "weightcast/control/group.h"
#include "weightcast/handoff/segment.h"
#include "weightcast/pipeline/slot_store.h"

namespace weightcast {

class Publisher final : public SlotStore {
 public:
  /// Makes the segment. `group` outlives the publisher; its failure ends waits. Errors:
  /// `kNoResource`, naming the limit (memory of the cgroup, file size, descriptors) to raise.
  static Result<std::unique_ptr<Publisher>> create(const SegmentGeometry& geometry, Group& group);
  ~Publisher() override;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Lets `rank` map the segment: sends its descriptors over `link`. Before the first publish.
  /// Errors: `kNoResource`; `kPeerLost` when the rank hung up.
  Status add_reader(const Fd& link, int rank);

  [[nodiscard]] size_t num_slots() const override;
  [[nodiscard]] MemoryView payload(size_t index) const override;
  Status wait_free(size_t index, Deadline deadline) override;
  Status make_resident(size_t index, uint64_t size) override;
  Status publish(size_t index, const BucketHeader& header) override;

 private:
  struct Reader;
  Publisher(const SegmentGeometry& geometry, Group& group, Fd memory, Mapping mapping);
  [[nodiscard]] SegmentHeader& header() const;
  Status wait_released(const Reader& reader, uint64_t number, Deadline deadline);

  SegmentGeometry geometry_;
  Group& group_;
  Fd memory_;
  Mapping mapping_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<uint64_t> resident_;  ///< bytes of each slot that have pages
  uint64_t num_published_ = 0;      ///< written by the communication thread only
};

}  // namespace weightcast
