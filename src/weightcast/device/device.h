// The seam to an accelerator, or to the host standing in for one: memory, streams, events.
// One thread a stream. A device makes streams, events and buffers and must outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/device/memory.h"

namespace weightcast {

/// Digests are taken over blocks of this many bytes, counted from the first byte of a tensor.
inline constexpr size_t kDigestBlockSize = 64 * 1024;

/// What happens to elements on their way. Narrowing rounds to nearest even; NaN stays NaN.
enum class Conversion : uint8_t {
  kNone,
  kF32ToBf16,
  kF32ToF16,
  kF64ToF32,
  kF64ToBf16,
  kF64ToF16,
};

/// Bytes an element of the source and of the destination has. `kNone` counts bytes: {1, 1}.
struct ConversionWidths {
  size_t source;
  size_t destination;
};
ConversionWidths widths(Conversion conversion);

/// One copy. `source` and `destination` do not overlap; their sizes agree under `conversion`.
struct Copy {
  MemoryView destination;
  ConstMemoryView source;
  Conversion conversion = Conversion::kNone;
  /// XXH3-64 of each block of `kDigestBlockSize` bytes of the destination, the last one shorter.
  /// Empty: no digest wanted. Else exactly `num_digest_blocks(destination.size())` entries.
  std::span<uint64_t> block_digests;
};

constexpr size_t num_digest_blocks(size_t size) {
  return (size + kDigestBlockSize - 1) / kDigestBlockSize;
}

/// A mark in a stream. Recorded again, it forgets the earlier mark.
class Event {
 public:
  virtual ~Event() = default;
  /// Blocks until the work before the last `record` is done. An event that was never recorded is
  /// done. Errors: `kDeadline`; the error of the work itself.
  virtual Status wait(Deadline deadline) = 0;
};

/// Work in order. A call returns when the work is *enqueued*; memory named in it must stay valid
/// until an event recorded behind it is done. A host stream in production does the work at once.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status copy(const Copy& copy) = 0;
  /// Digests `bytes` in place, as `Copy::block_digests` has it.
  virtual Status digest(ConstMemoryView bytes, std::span<uint64_t> block_digests) = 0;
  virtual Status record(Event& event) = 0;
  /// Work enqueued later starts only after `event`, as recorded now, is done.
  virtual Status wait(Event& event) = 0;
  /// Blocks until everything enqueued is done. Errors: `kDeadline`.
  virtual Status synchronize(Deadline deadline) = 0;
};

/// Owns device memory.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual MemoryView view() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual DeviceId id() const = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  /// Errors: `kNoResource`.
  virtual Result<std::unique_ptr<Buffer>> allocate(size_t size) = 0;
};

}  // namespace weightcast
