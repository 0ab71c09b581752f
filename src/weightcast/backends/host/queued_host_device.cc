#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "weightcast/backends/host/host_buffer.h"
#include "weightcast/backends/host/host_device.h"
#include "weightcast/backends/host/work_queue.h"
#include "weightcast/device/host_copy.h"

namespace weightcast {
namespace {

// What a destination holds while the copy into it is under way.
constexpr std::byte kPoison{0xdb};
constexpr uint64_t kPoisonDigest = 0xdbdbdbdbdbdbdbdb;

class QueuedEvent final : public Event {
 public:
  Status wait(Deadline deadline) override { return mark().wait(deadline); }

  Mark mark() const {
    const MutexLock lock(mutex_);
    return mark_;
  }
  void set(Mark mark) {
    const MutexLock lock(mutex_);
    mark_ = std::move(mark);
  }

 private:
  // One thread records and others wait.
  mutable Mutex mutex_;
  Mark mark_ WEIGHTCAST_GUARDED_BY(mutex_);
};

class QueuedStream final : public Stream {
 public:
  explicit QueuedStream(uint64_t seed)
      : queue_(std::make_shared<WorkQueue>(seed)), thread_([queue = queue_] { queue->run(); }) {}
  ~QueuedStream() override { queue_->close(); }  // and the thread's destructor joins it
  QueuedStream(const QueuedStream&) = delete;
  QueuedStream& operator=(const QueuedStream&) = delete;

  Status copy(const Copy& copy) override {
    queue_->push([copy](Adversary& adversary) {
      std::ranges::fill(copy.destination, kPoison);
      std::ranges::fill(copy.block_digests, kPoisonDigest);
      adversary.pause();
      host_copy(copy);
    });
    return {};
  }

  Status digest(ConstMemoryView bytes, std::span<uint64_t> block_digests) override {
    queue_->push([bytes, block_digests](Adversary& adversary) {
      std::ranges::fill(block_digests, kPoisonDigest);
      adversary.pause();
      host_digest(bytes, block_digests);
    });
    return {};
  }

  Status record(Event& event) override {
    static_cast<QueuedEvent&>(event).set({queue_, queue_->last()});
    return {};
  }

  Status wait(Event& event) override {
    // A mark lies behind work that was enqueued earlier than this, so no circle of waits can close.
    queue_->push([mark = static_cast<QueuedEvent&>(event).mark()](Adversary&) {
      while (!mark.wait(Deadline::after(std::chrono::seconds(10)))) {
      }
    });
    return {};
  }

  Status synchronize(Deadline deadline) override {
    return queue_->wait_done(queue_->last(), deadline);
  }

 private:
  std::shared_ptr<WorkQueue> queue_;
  std::jthread thread_;
};

class QueuedHostDevice final : public Device {
 public:
  explicit QueuedHostDevice(uint64_t seed) : seed_(seed) {}

  [[nodiscard]] DeviceId id() const override { return {DeviceKind::kHost, 0}; }
  Result<std::unique_ptr<Stream>> create_stream() override {
    // Relaxed: only the number itself has to differ.
    const uint64_t number = num_streams_.fetch_add(1, std::memory_order_relaxed);
    return std::make_unique<QueuedStream>(seed_ * 0x9e3779b97f4a7c15 + number);
  }
  Result<std::unique_ptr<Event>> create_event() override { return std::make_unique<QueuedEvent>(); }
  Result<std::unique_ptr<Buffer>> allocate(size_t size) override {
    return allocate_host_buffer(size);
  }

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> num_streams_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_queued_host_device(uint64_t seed) {
  return std::make_unique<QueuedHostDevice>(seed);
}

}  // namespace weightcast
