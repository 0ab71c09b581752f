// The one thread that issues collectives: it makes the communicator, moves packed buckets in order,
// hands them to the readers of this host, and destroys the communicator.
// Members are called by the thread that started it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/hash.h"
#include "weightcast/base/result.h"
#include "weightcast/base/sync.h"
#include "weightcast/comm/communicator.h"
#include "weightcast/device/device.h"
#include "weightcast/pipeline/slot_ring.h"
#include "weightcast/pipeline/slot_store.h"
#include "weightcast/plan/digest.h"

namespace weightcast {

/// What the communication thread did for one version.
struct MoveReport {
  std::vector<Hash128> tensor_digests;  ///< in the order sent; empty when checksums are off
  uint64_t bytes_on_wire = 0;
  double move_seconds = 0;  ///< in the communicator and publishing
};

class CommThread {
 public:
  using CreateCommunicator =
      std::function<Result<std::unique_ptr<Communicator>>(const CommConfig&, Device&)>;
  struct Config {
    CreateCommunicator create_communicator;  ///< called on the new thread
    CommConfig comm;
    bool checksum = true;
    Duration timeout{60'000};  ///< for one bucket to move
  };

  /// Starts the thread and waits until it has made its communicator. `device`, `ring` and `store`
  /// outlive it. Errors: the backend's.
  static Result<std::unique_ptr<CommThread>> start(Config config, Device& device, SlotRing& ring,
                                                   SlotStore& store);
  /// Aborts the communicator, closes the ring and joins.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  /// What was moved since the last call. Requires: `SlotRing::wait_moved` has returned, so that the
  /// thread is idle.
  MoveReport take_report();

 private:
  CommThread(Config config, Device& device, SlotRing& ring, SlotStore& store);
  void run();
  Status create();
  Status move(PackedBucket& bucket);
  void add_digests(PackedBucket& bucket);
  void set_started(Status status);
  Status wait_started();

  Config config_;
  Device& device_;
  SlotRing& ring_;
  SlotStore& store_;

  // Of the communication thread alone.
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> sent_;
  TensorDigest tensor_digest_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<Status> started_ WEIGHTCAST_GUARDED_BY(mutex_);
  MoveReport report_ WEIGHTCAST_GUARDED_BY(mutex_);
  uint64_t wire_reported_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
  // Made and destroyed by the communication thread; others may only abort it, under the mutex.
  std::unique_ptr<Communicator> communicator_;

  std::jthread thread_;  // last: everything above exists before it runs
};

}  // namespace weightcast
