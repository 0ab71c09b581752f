// Moves a slot from one rank's memory into the same slot of all the others.
// One thread, the communication thread, but for `abort`.
#pragma once

#include <cstdint>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/device/device.h"

namespace weightcast {

/// What a communicator is made from.
struct CommConfig {
  int rank = 0;
  int world_size = 1;
  uint64_t epoch = 0;
  /// The memory that will be broadcast, registered once; outlives the communicator.
  std::vector<MemoryView> slots;
};

/// Errors: `kInvalidArgument` when the rank does not fit the world size.
Status validate(const CommConfig& config);
/// Whether `bytes` are the first bytes of a slot, or all of it: what a communicator may move.
bool is_slot_prefix(const CommConfig& config, ConstMemoryView bytes);

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;

  /// Enqueues on `stream` the broadcast of `bytes`, a prefix of one of the slots, from `root`.
  /// Every rank issues the same broadcasts in the same order. May block until `deadline`.
  /// Errors leave the communicator unusable: `kDeadline`, `kPeerLost`, `kInternal`.
  virtual Status broadcast(MemoryView bytes, int root, Stream& stream, Deadline deadline) = 0;

  /// The error of a broadcast that was enqueued and failed later, if any. Does not block.
  virtual Status poll_error() = 0;

  /// Makes a blocked `broadcast` return soon. Thread-safe; afterwards only the destructor is legal.
  virtual void abort() noexcept = 0;

  /// Bytes that this rank has put on a wire so far, payload and protocol.
  [[nodiscard]] virtual uint64_t bytes_on_wire() const = 0;
};

}  // namespace weightcast
