// Packs one version's tensors into slots and hands full buckets to the communication thread.
// One thread, the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/mapping.h"
#include "weightcast/base/result.h"
#include "weightcast/device/device.h"
#include "weightcast/pipeline/slot_ring.h"
#include "weightcast/pipeline/slot_store.h"
#include "weightcast/pipeline/tensor_reader.h"
#include "weightcast/plan/bucket.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

struct BucketSenderConfig {
  uint64_t sequence = 0;
  uint64_t bucket_size = 0;
  bool checksum = true;
  /// Floating tensors that are wider travel as this.
  std::optional<DType> cast;
  /// What will be pushed, as the source has it; absent: headers bring the metas.
  std::optional<std::vector<TensorMeta>> announced;
  /// Off: a bucket is packed only after the one before it was released by every reader.
  bool overlap = true;
};

/// The metas that travel for what the source has. Requires: `cast` as `cast_dtype` wants it.
std::vector<TensorMeta> cast_metas(std::span<const TensorMeta> metas, std::optional<DType> cast);

class BucketSender {
 public:
  /// Waits for `what` to succeed for as long as anything moves; the session knows what moves
  /// elsewhere.
  using Wait = std::function<Status(const std::function<Status(Deadline)>& what)>;

  /// The references outlive the sender. `stream` is the producer's: copies are ordered on it.
  BucketSender(BucketSenderConfig config, SlotRing& ring, SlotStore& store, Stream& stream,
               Wait wait);

  /// Packs a tensor from memory. Errors: `kBadInput`; those of the ring. The sender is then
  /// unusable.
  Status push(const TensorMeta& source_meta, ConstMemoryView source);
  /// Packs a tensor from a reader.
  Status push(const TensorMeta& source_meta, TensorReader& reader);
  /// Hands over the last bucket, marked as such, and waits until all have moved. Errors:
  /// `kBadInput` when fewer tensors were pushed than announced.
  Status finish();

  /// As they travel, in the order pushed.
  const std::vector<TensorMeta>& metas() const { return metas_; }
  uint64_t num_buckets() const { return num_buckets_; }
  uint64_t payload_size() const { return payload_size_; }
  double pack_seconds() const { return pack_seconds_; }
  double wait_seconds() const { return wait_seconds_; }

 private:
  // Fills `destination` with the tensor's bytes, as they travel, from `offset` on.
  using Fill = std::function<Status(uint64_t offset, MemoryView destination,
                                    std::span<uint64_t> block_digests)>;

  // The meta as it travels; valid until the next call.
  Result<const TensorMeta*> begin(const TensorMeta& source_meta);
  Status place_all(const Fill& fill);
  Status place(const Placement& placement, const Fill& fill);
  Status open_bucket();
  Status close_bucket(bool last);
  Status fill_from_reader(TensorReader& reader, Conversion conversion, uint64_t offset,
                          MemoryView destination, std::span<uint64_t> block_digests);
  Status read_converted(TensorReader& reader, Conversion conversion, uint64_t offset,
                        MemoryView destination, std::span<uint64_t> block_digests);

  BucketSenderConfig config_;
  SlotRing& ring_;
  SlotStore& store_;
  Stream& stream_;
  Wait wait_;
  BucketPacker packer_;
  PackedBucket* open_ = nullptr;
  std::vector<TensorMeta> metas_;
  std::unordered_set<std::string> names_;
  Mapping scratch_;  ///< where a reader's bytes lie before they are converted
  uint64_t num_buckets_ = 0;
  uint64_t payload_size_ = 0;
  double pack_seconds_ = 0;
  double wait_seconds_ = 0;
};

}  // namespace weightcast
