#include "loopback_store.h"

namespace weightcast::testing {

LoopbackStore::LoopbackStore(size_t num_slots, uint64_t bucket_size) : slots_(num_slots) {
  for (Slot& slot : slots_) slot.payload.resize(bucket_size);
}

MemoryView LoopbackStore::payload(size_t index) const { return slots_[index].payload; }

Status LoopbackStore::wait_free(size_t index, Deadline deadline) {
  const MutexLock lock(mutex_);
  while (slots_[index].busy) {
    if (!changed_.wait_until(mutex_, deadline) && deadline.expired()) {
      return Error(Code::kDeadline, "the slot was not released in time");
    }
  }
  return {};
}

Status LoopbackStore::make_resident(size_t, uint64_t) { return {}; }

Status LoopbackStore::publish(size_t index, const BucketHeader& header) {
  const MutexLock lock(mutex_);
  slots_[index].header = header;
  slots_[index].busy = true;
  ++num_published_;
  changed_.notify_all();
  return {};
}

Result<FilledBucket> LoopbackStore::next(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (num_read_ == num_published_) {
    if (!changed_.wait_until(mutex_, deadline) && deadline.expired()) {
      return Error(Code::kDeadline, "no bucket in time");
    }
  }
  Slot& slot = slots_[num_read_ % slots_.size()];
  ++num_read_;
  return FilledBucket{num_read_, slot.header,
                      ConstMemoryView(slot.payload).first(slot.header.used_size)};
}

Status LoopbackStore::release(uint64_t number) {
  const MutexLock lock(mutex_);
  slots_[(number - 1) % slots_.size()].busy = false;
  changed_.notify_all();
  return {};
}

}  // namespace weightcast::testing
