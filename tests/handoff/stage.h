// What tests of the hand-off share: links, buckets of pattern bytes, counts of what is open.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "child.h"
#include "fake_group.h"
#include "weightcast/base/fd.h"
#include "weightcast/handoff/consumer.h"
#include "weightcast/handoff/link.h"
#include "weightcast/handoff/publisher.h"

namespace weightcast::testing {

inline Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }
inline Deadline shortly() { return Deadline::after(std::chrono::milliseconds(30)); }

/// Both ends of a link within this process.
std::pair<Fd, Fd> make_link();

/// Connects to the abstract socket `name` and says nothing.
Fd connect_raw(const std::string& name);
/// Connects and says a hello with the right token for `rank`, without waiting for an answer.
Fd connect_as(const LinkListener& listener, int64_t rank);

/// A header of one tensor that fills `used_size` bytes of the bucket.
BucketHeader make_header(uint64_t index, uint64_t used_size);
/// A size for bucket `number` that differs from its neighbours'.
uint64_t used_size(const SegmentGeometry& geometry, uint64_t number);

/// Waits for the slot of bucket `number`, fills it with the pattern of that number and publishes.
Status publish_bucket(Publisher& publisher, const SegmentGeometry& geometry, uint64_t number);
/// What is wrong with bucket `number` as published by `publish_bucket`, or nothing.
std::string inspect(const FilledBucket& bucket, const SegmentGeometry& geometry, uint64_t number);

/// A publisher and readers in processes of their own.
class Stage {
 public:
  using Read = std::function<std::string(Consumer&, FakeGroup&)>;
  /// Starts one process per element of `readers`; reader i has rank i + 1.
  Stage(const SegmentGeometry& geometry, const std::vector<Read>& readers);

  FakeGroup& group() { return group_; }
  Publisher& publisher() { return *publisher_; }
  Child& reader(int rank) { return children_[static_cast<size_t>(rank) - 1]; }
  const Fd& link(int rank) const { return links_[static_cast<size_t>(rank) - 1]; }
  const SegmentGeometry& geometry() const { return geometry_; }

  Status publish(uint64_t number) { return publish_bucket(*publisher_, geometry_, number); }

 private:
  SegmentGeometry geometry_;
  FakeGroup group_;
  std::vector<Child> children_;
  std::vector<Fd> links_;
  std::unique_ptr<Publisher> publisher_;
};

/// Reads and checks buckets 1 … `count`, releasing each at once.
Stage::Read read_in_order(const SegmentGeometry& geometry, uint64_t count);

size_t num_open_fds();
size_t num_mappings();

}  // namespace weightcast::testing
