#include "weightcast/pipeline/slot_ring.h"

#include <chrono>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

// Each extent costs at least this much of a header (plan/bucket.cc), which bounds how many there
// are.
constexpr uint64_t kMinExtentHeaderSize = 32;

void clear(PackedBucket& bucket) {
  bucket.header.extents.clear();
  bucket.header.metas.clear();
  bucket.header.digests.clear();
  bucket.header.used_size = 0;
  bucket.header.last = false;
  bucket.block_digests.clear();
  bucket.completes_tensor.clear();
}

}  // namespace

Result<std::unique_ptr<SlotRing>> SlotRing::create(SlotStore& store, Device& device,
                                                   uint64_t bucket_size) {
  std::vector<PackedBucket> buckets(store.num_slots());
  const uint64_t max_extents = kMaxHeaderSize / kMinExtentHeaderSize;
  for (size_t slot = 0; slot < buckets.size(); ++slot) {
    buckets[slot].slot = slot;
    buckets[slot].block_digests.reserve(num_digest_blocks(bucket_size) + max_extents);
    WEIGHTCAST_ASSIGN(buckets[slot].packed, device.create_event());
  }
  return std::unique_ptr<SlotRing>(new SlotRing(store, std::move(buckets)));
}

Result<PackedBucket*> SlotRing::acquire(Deadline deadline) {
  PackedBucket& bucket = buckets_[num_acquired_ % buckets_.size()];
  if (num_acquired_ >= buckets_.size()) {
    WEIGHTCAST_TRY(wait_for_moves(num_acquired_ + 1 - buckets_.size(), deadline));
  }
  WEIGHTCAST_TRY(store_.wait_free(bucket.slot, deadline));
  ++num_acquired_;
  clear(bucket);
  return &bucket;
}

void SlotRing::hand_over() {
  const MutexLock lock(mutex_);
  WEIGHTCAST_CHECK(num_packed_ < num_acquired_);
  ++num_packed_;
  changed_.notify_all();
}

Status SlotRing::wait_moved(Deadline deadline) { return wait_for_moves(num_acquired_, deadline); }

Status SlotRing::wait_for_moves(uint64_t count, Deadline deadline) {
  const MutexLock lock(mutex_);
  while (num_moved_ < count) {
    if (error_) return *error_;
    if (!changed_.wait_until(mutex_, deadline) && deadline.expired()) {
      return Error(Code::kDeadline, "the communication thread has not moved a bucket in time");
    }
  }
  return {};
}

PackedBucket* SlotRing::next_packed() {
  const MutexLock lock(mutex_);
  while (num_moved_ == num_packed_ && !closed_) {
    // Idle between versions; `close` ends the wait.
    changed_.wait_until(mutex_, Deadline::after(std::chrono::hours(1)));
  }
  return closed_ ? nullptr : &buckets_[num_moved_ % buckets_.size()];
}

void SlotRing::mark_moved() {
  const MutexLock lock(mutex_);
  ++num_moved_;
  changed_.notify_all();
}

void SlotRing::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_all();
}

void SlotRing::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace weightcast
