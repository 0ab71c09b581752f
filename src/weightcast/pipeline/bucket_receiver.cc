#include "weightcast/pipeline/bucket_receiver.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/check.h"
#include "weightcast/base/log.h"

namespace weightcast {
namespace {

// For one piece to be copied or digested, which waits for nobody else.
constexpr Clock::duration kTakeTimeout = std::chrono::minutes(1);

}  // namespace

BucketReceiver::BucketReceiver(BucketReceiverConfig config, BucketSource& source, Stream& stream,
                               WaitNext wait_next)
    : config_(std::move(config)),
      source_(source),
      stream_(stream),
      wait_next_(std::move(wait_next)),
      follower_(config_.bucket_size, config_.announced, config_.checksum),
      version_digest_(config_.checksum ? DigestKind::kBytes : DigestKind::kMetas) {}

Result<std::optional<BucketLease>> BucketReceiver::next() {
  if (follower_.finished()) return std::optional<BucketLease>();
  const auto started = Clock::now();
  WEIGHTCAST_ASSIGN(FilledBucket bucket, wait_next_(source_));
  wait_seconds_ += seconds_between(started, Clock::now());
  if (Status accepted = accept(bucket.header); !accepted) {
    release(bucket.number);
    return accepted.error();
  }
  return std::optional<BucketLease>(BucketLease(*this, bucket.number, make_pieces(bucket)));
}

Status BucketReceiver::accept(const BucketHeader& header) {
  if (header.sequence != config_.sequence) {
    return Error(Code::kCorruption, fmt::format("bucket {} belongs to attempt {}, not {}",
                                                header.index, header.sequence, config_.sequence));
  }
  WEIGHTCAST_TRY(follower_.accept(header));
  for (const Hash128& digest : header.digests) expected_digests_.push_back(digest);
  return {};
}

std::vector<Piece> BucketReceiver::make_pieces(const FilledBucket& bucket) {
  std::vector<Piece> pieces;
  pieces.reserve(bucket.header.extents.size());
  for (const Extent& extent : bucket.header.extents) {
    Piece piece{extent.tensor, extent.tensor_offset,
                bucket.payload.subspan(extent.bucket_offset, extent.size), false};
    piece.completes_tensor =
        extent.tensor_offset + extent.size == byte_size(metas()[extent.tensor]);
    pieces.push_back(piece);
  }
  return pieces;
}

void BucketReceiver::release(uint64_t number) {
  const Status released = source_.release(number);
  if (!released) log_message(LogLevel::kWarn, released.error().message());
}

Status BucketReceiver::begin_take(const Piece& piece) {
  if (piece.tensor != num_taken_ || piece.offset != taken_offset_) {
    return Error(Code::kInvalidArgument,
                 fmt::format("pieces are taken in order: byte {} of tensor {} comes next, not byte "
                             "{} of tensor {}",
                             taken_offset_, num_taken_, piece.offset, piece.tensor));
  }
  block_digests_.resize(config_.checksum ? num_digest_blocks(piece.bytes.size()) : 0);
  return {};
}

Status BucketReceiver::end_take(const Piece& piece) {
  taken_offset_ += piece.bytes.size();
  tensor_digest_.add(block_digests_);
  if (!piece.completes_tensor) return {};
  const TensorMeta& meta = metas()[piece.tensor];
  const Hash128 digest = config_.checksum ? tensor_digest_.finish() : Hash128();
  version_digest_.add(meta, digest);
  ++num_taken_;
  taken_offset_ = 0;
  if (!config_.checksum) return {};
  const Hash128 expected = expected_digests_.front();
  expected_digests_.pop_front();
  if (digest == expected) return {};
  return Error(Code::kCorruption, fmt::format("tensor {} arrived with digest {}, sent with {}",
                                              describe(meta), digest.hex(), expected.hex()));
}

Status BucketReceiver::copy_out(const Piece& piece, MemoryView destination) {
  WEIGHTCAST_TRY(begin_take(piece));
  if (destination.size() != piece.bytes.size()) {
    return Error(Code::kInvalidArgument, fmt::format("a piece of {} bytes does not fit into {}",
                                                     piece.bytes.size(), destination.size()));
  }
  const auto started = Clock::now();
  WEIGHTCAST_TRY(stream_.copy({destination, piece.bytes, Conversion::kNone, block_digests_}));
  WEIGHTCAST_TRY(stream_.synchronize(Deadline::at(started + kTakeTimeout)));
  move_seconds_ += seconds_between(started, Clock::now());
  return end_take(piece);
}

Status BucketReceiver::verify(const Piece& piece) {
  WEIGHTCAST_TRY(begin_take(piece));
  if (config_.checksum) {
    const auto started = Clock::now();
    WEIGHTCAST_TRY(stream_.digest(piece.bytes, block_digests_));
    WEIGHTCAST_TRY(stream_.synchronize(Deadline::at(started + kTakeTimeout)));
    move_seconds_ += seconds_between(started, Clock::now());
  }
  return end_take(piece);
}

Hash128 BucketReceiver::digest() const {
  WEIGHTCAST_CHECK(num_taken_ == metas().size());
  return version_digest_.finish();
}

}  // namespace weightcast
