// Which byte of which tensor lies where in which bucket. The same tensors give the same buckets on
// every rank and every machine (docs/design.md, "Packing rules").
// Values and a packer: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "weightcast/base/hash.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

inline constexpr uint64_t kExtentAlignment = 256;
/// A tensor is split only at multiples of this, so that no digest block straddles two buckets.
inline constexpr uint64_t kSplitAlignment = 64 * 1024;
inline constexpr uint64_t kMinBucketSize = 64 * 1024;
inline constexpr uint64_t kMaxBucketSize = uint64_t{1} << 44;
/// A bucket is closed before its encoded header could outgrow this.
inline constexpr uint64_t kMaxHeaderSize = 1024 * 1024;

/// A tensor's part in a bucket. All numbers but `tensor` are bytes.
struct Extent {
  uint64_t tensor = 0;  ///< index in the order sent
  uint64_t tensor_offset = 0;
  uint64_t bucket_offset = 0;  ///< a multiple of `kExtentAlignment`
  uint64_t size = 0;           ///< 0 for a tensor without bytes, which still has one extent

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// What travels beside a bucket's bytes.
struct BucketHeader {
  uint64_t sequence = 0;   ///< the attempt it belongs to (docs/wire.md)
  uint64_t index = 0;      ///< 0, 1, … within the version
  uint64_t used_size = 0;  ///< bytes from the bucket's start that move
  bool last = false;       ///< no bucket of this version follows
  std::vector<Extent> extents;
  /// Metas of the tensors whose first extent lies here, in order; empty where they were announced.
  std::vector<TensorMeta> metas;
  /// Digests of the tensors whose last byte lies here, in order; empty when checksums are off.
  std::vector<Hash128> digests;

  friend bool operator==(const BucketHeader&, const BucketHeader&) = default;
};

/// Where the next part of a tensor goes.
struct Placement {
  bool opens_bucket = false;  ///< the bucket before it, if any, is complete
  Extent extent;
  bool completes_tensor = false;
};

/// Lays tensors into buckets as they come. A tensor that fits into a bucket is never split.
class BucketPacker {
 public:
  /// Requires: `bucket_size` within `kMinBucketSize` and `kMaxBucketSize`.
  explicit BucketPacker(uint64_t bucket_size);

  /// Starts the next tensor. Requires: the one before it is complete; `check(meta)` passes.
  void begin_tensor(const TensorMeta& meta);
  /// The next part of the tensor, or nothing when it is complete.
  std::optional<Placement> next();

  /// Bytes used of the open bucket; 0 before the first placement.
  [[nodiscard]] uint64_t used_size() const { return used_; }
  [[nodiscard]] uint64_t num_buckets() const { return num_buckets_; }
  [[nodiscard]] uint64_t num_tensors() const { return num_tensors_; }

 private:
  /// Bytes of the tensor's next part if it goes into the open bucket; nothing if it can not.
  [[nodiscard]] std::optional<uint64_t> part_in_open_bucket() const;

  uint64_t bucket_size_;
  uint64_t used_ = 0;
  uint64_t header_used_ = 0;  ///< an upper bound of the open bucket's encoded header
  uint64_t num_buckets_ = 0;
  uint64_t num_tensors_ = 0;
  uint64_t tensor_size_ = 0;
  uint64_t tensor_offset_ = 0;
  uint64_t tensor_header_cost_ = 0;
  bool tensor_open_ = false;
};

struct PlannedBucket {
  uint64_t used_size = 0;
  std::vector<Extent> extents;
};

struct BucketPlan {
  std::vector<PlannedBucket> buckets;
  uint64_t payload_size = 0;   ///< bytes of all tensors, without padding
  uint64_t largest_split = 0;  ///< bytes of the largest tensor that spans buckets, or 0
};

/// Runs the packer over `metas`. Requires: each passes `check`.
BucketPlan make_plan(std::span<const TensorMeta> metas, uint64_t bucket_size);

/// Follows the headers of one version on a receiver and accepts exactly what a packer makes of the
/// metas: it packs them again and compares. So indices have no gap, and extents are in order,
/// aligned, disjoint, within the bucket and the tensor, whatever numbers a header holds. A version
/// without tensors is one empty bucket.
class PlanFollower {
 public:
  /// `announced` are the metas known in advance, or nothing if headers bring them.
  /// Requires: `bucket_size` within `kMinBucketSize` and `kMaxBucketSize`.
  PlanFollower(uint64_t bucket_size, std::optional<std::vector<TensorMeta>> announced,
               bool digests_expected);

  /// Errors: `kCorruption`, naming bucket and tensor; the state is then unusable.
  Status accept(const BucketHeader& header);

  /// All metas known so far, in order.
  const std::vector<TensorMeta>& metas() const { return metas_; }
  uint64_t num_complete() const { return num_complete_; }  ///< tensors received to their end
  uint64_t num_buckets() const { return num_buckets_; }
  uint64_t payload_size() const { return payload_size_; }  ///< bytes without padding
  bool finished() const { return finished_; }              ///< the last bucket was accepted

 private:
  Status accept_header(const BucketHeader& header);
  Status accept_metas(std::span<const TensorMeta> metas);
  Status accept_extents(std::span<const Extent> extents);
  Status accept_end(const BucketHeader& header, uint64_t num_completed) const;
  Status check_new(const TensorMeta& meta);

  BucketPacker packer_;
  bool announced_;
  bool digests_expected_;
  Status announced_status_;  ///< what is wrong with the announced metas
  std::vector<TensorMeta> metas_;
  std::unordered_set<std::string> names_;
  uint64_t sequence_ = 0;
  uint64_t num_complete_ = 0;
  uint64_t num_buckets_ = 0;
  uint64_t payload_size_ = 0;
  bool finished_ = false;
};

}  // namespace weightcast
