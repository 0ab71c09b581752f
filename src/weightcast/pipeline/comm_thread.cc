#include "weightcast/pipeline/comm_thread.h"

#include <utility>

#include "weightcast/base/thread.h"

namespace weightcast {

CommThread::CommThread(Config config, Device& device, SlotRing& ring, SlotStore& store)
    : config_(std::move(config)), device_(device), ring_(ring), store_(store) {}

Result<std::unique_ptr<CommThread>> CommThread::start(Config config, Device& device, SlotRing& ring,
                                                      SlotStore& store) {
  std::unique_ptr<CommThread> thread(new CommThread(std::move(config), device, ring, store));
  WEIGHTCAST_ASSIGN(thread->thread_, start_thread([self = thread.get()] { self->run(); }));
  WEIGHTCAST_TRY(thread->wait_started());
  return thread;
}

CommThread::~CommThread() {
  {
    const MutexLock lock(mutex_);
    if (communicator_) communicator_->abort();
  }
  ring_.close();
}

void CommThread::run() {
  const Status created = create();
  set_started(created);
  if (!created) return;
  while (PackedBucket* bucket = ring_.next_packed()) {
    if (Status moved = move(*bucket); !moved) {
      ring_.fail(moved.error());
      break;
    }
    ring_.mark_moved();
  }
  std::unique_ptr<Communicator> communicator;
  {
    const MutexLock lock(mutex_);
    communicator = std::exchange(communicator_, nullptr);
  }
}

Status CommThread::create() {
  WEIGHTCAST_ASSIGN(stream_, device_.create_stream());
  WEIGHTCAST_ASSIGN(sent_, device_.create_event());
  WEIGHTCAST_ASSIGN(auto communicator, config_.create_communicator(config_.comm, device_));
  const MutexLock lock(mutex_);
  communicator_ = std::move(communicator);
  return {};
}

Status CommThread::move(PackedBucket& bucket) {
  const Deadline deadline = Deadline::after(config_.timeout);
  WEIGHTCAST_TRY(stream_->wait(*bucket.packed));
  const auto started = Clock::now();
  const MemoryView bytes = store_.payload(bucket.slot).first(bucket.header.used_size);
  WEIGHTCAST_TRY(communicator_->broadcast(bytes, 0, *stream_, deadline));
  WEIGHTCAST_TRY(stream_->record(*sent_));
  // Other processes read the slot next, and they can not wait for an event of ours.
  WEIGHTCAST_TRY(sent_->wait(deadline));
  WEIGHTCAST_TRY(communicator_->poll_error());
  if (config_.checksum) add_digests(bucket);
  WEIGHTCAST_TRY(store_.publish(bucket.slot, bucket.header));

  const MutexLock lock(mutex_);
  report_.move_seconds += seconds_between(started, Clock::now());
  report_.bytes_on_wire = communicator_->bytes_on_wire() - wire_reported_;
  return {};
}

void CommThread::add_digests(PackedBucket& bucket) {
  std::span<const uint64_t> blocks(bucket.block_digests);
  for (size_t i = 0; i < bucket.header.extents.size(); ++i) {
    const size_t num_blocks = num_digest_blocks(bucket.header.extents[i].size);
    tensor_digest_.add(blocks.first(num_blocks));
    blocks = blocks.subspan(num_blocks);
    if (bucket.completes_tensor[i]) bucket.header.digests.push_back(tensor_digest_.finish());
  }
  const MutexLock lock(mutex_);
  report_.tensor_digests.insert(report_.tensor_digests.end(), bucket.header.digests.begin(),
                                bucket.header.digests.end());
}

MoveReport CommThread::take_report() {
  const MutexLock lock(mutex_);
  wire_reported_ += report_.bytes_on_wire;
  return std::exchange(report_, {});
}

void CommThread::set_started(Status status) {
  const MutexLock lock(mutex_);
  started_ = std::move(status);
  changed_.notify_all();
}

Status CommThread::wait_started() {
  const Deadline deadline = Deadline::after(config_.timeout);
  const MutexLock lock(mutex_);
  while (!started_) {
    if (!changed_.wait_until(mutex_, deadline) && deadline.expired()) {
      return Error(Code::kDeadline, "the communicator was not made in time");
    }
  }
  return *started_;
}

}  // namespace weightcast
