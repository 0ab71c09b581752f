// Follows one version bucket by bucket: checks every header, leases pieces, compares digests.
// One thread, the caller's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/hash.h"
#include "weightcast/base/result.h"
#include "weightcast/device/device.h"
#include "weightcast/pipeline/lease.h"
#include "weightcast/pipeline/slot_store.h"
#include "weightcast/plan/bucket.h"
#include "weightcast/plan/digest.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

struct BucketReceiverConfig {
  uint64_t sequence = 0;
  uint64_t bucket_size = 0;
  bool checksum = true;
  /// What will arrive; absent: headers bring the metas.
  std::optional<std::vector<TensorMeta>> announced;
};

class BucketReceiver final : public PieceReader, private BucketLease::Owner {
 public:
  using WaitNext = std::function<Result<FilledBucket>(BucketSource&)>;

  /// The references outlive the receiver and every lease. `stream` is the consumer's.
  BucketReceiver(BucketReceiverConfig config, BucketSource& source, Stream& stream,
                 WaitNext wait_next);

  const std::vector<TensorMeta>& metas() const override { return follower_.metas(); }
  Result<std::optional<BucketLease>> next() override;
  Status copy_out(const Piece& piece, MemoryView destination) override;
  Status verify(const Piece& piece) override;

  /// Whether the last bucket has arrived.
  bool finished() const { return follower_.finished(); }
  uint64_t num_buckets() const { return follower_.num_buckets(); }
  uint64_t payload_size() const { return follower_.payload_size(); }
  /// Tensors taken to their end.
  uint64_t num_taken() const { return num_taken_; }
  /// Over everything taken. Requires: every tensor that arrived was taken.
  Hash128 digest() const;
  double wait_seconds() const { return wait_seconds_; }
  double move_seconds() const { return move_seconds_; }

 private:
  void release(uint64_t number) override;
  Status accept(const BucketHeader& header);
  std::vector<Piece> make_pieces(const FilledBucket& bucket);
  Status begin_take(const Piece& piece);
  Status end_take(const Piece& piece);

  BucketReceiverConfig config_;
  BucketSource& source_;
  Stream& stream_;
  WaitNext wait_next_;
  PlanFollower follower_;
  VersionDigest version_digest_;
  TensorDigest tensor_digest_;
  std::deque<Hash128> expected_digests_;  ///< of tensors that arrived and are not yet taken
  std::vector<uint64_t> block_digests_;   ///< of the piece being taken
  uint64_t num_taken_ = 0;
  uint64_t taken_offset_ = 0;  ///< bytes taken of tensor `num_taken_`
  double wait_seconds_ = 0;
  double move_seconds_ = 0;
};

}  // namespace weightcast
