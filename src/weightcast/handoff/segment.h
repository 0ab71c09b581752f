// The layout of the shared memory in which slots lie, and of the memory a reader answers in.
// Values and pure functions. Numbers that came from the other process are checked before use.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weightcast/base/result.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {

inline constexpr uint64_t kSegmentMagic = 0x3147455354534357;  // "WCSTSEG1"
inline constexpr uint32_t kMaxSlots = 64;
/// Processes of one host that can map a segment.
inline constexpr uint32_t kMaxReaders = 256;
/// Header areas and payloads start at multiples of this from the start of the segment.
inline constexpr uint64_t kSlotAlignment = 4096;
/// Where in a header area the encoded header starts. The 8 bytes at its start give its size.
inline constexpr uint64_t kEncodedHeaderOffset = 64;
inline constexpr uint64_t kHeaderAreaSize = kMaxHeaderSize + kSlotAlignment;

struct SegmentGeometry {
  uint64_t epoch = 0;
  uint64_t bucket_size = 0;
  uint64_t num_slots = 0;
  friend bool operator==(const SegmentGeometry&, const SegmentGeometry&) = default;
};
/// Errors: `kCorruption` for numbers outside the limits of plan/bucket.h and `kMaxSlots`.
Status check(const SegmentGeometry& geometry);

/// A bucket's number, alone on its cache line. Bucket number n (from 1) lies in slot (n - 1) mod
/// `num_slots`; 0 stands for none. Each word has one writer.
struct alignas(64) NumberWord {
  std::atomic<uint64_t> number;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Who waits for a number says so in an `awaited` word, looks at the number once more and then
// blocks on its eventfd; who stores a number looks at the `awaited` word afterwards and signals
// only if it is that very number. Both sides store and load sequentially consistent, so that at
// least one of them sees the other.

/// Start of the publisher's segment; the slots follow, each a header area of `kHeaderAreaSize`
/// bytes and then the payload. Only the publisher can write to a segment.
struct SegmentHeader {
  uint64_t magic = kSegmentMagic;
  SegmentGeometry geometry;
  /// For each slot, the bucket last published there.
  std::array<NumberWord, kMaxSlots> published{};
  /// For each reader, the bucket whose release the publisher is blocked on.
  std::array<NumberWord, kMaxReaders> awaited{};
};

/// Start, and all, of the memory that one reader writes and the publisher reads.
struct ReleaseWords {
  /// For each slot, the bucket last released there.
  std::array<NumberWord, kMaxSlots> released{};
  /// The bucket whose arrival this reader is blocked on.
  NumberWord awaited;
};

/// What the publisher sends over the link, together with four descriptors: the segment, the
/// reader's `ReleaseWords`, and the eventfds of filled and of released slots.
struct SegmentOffer {
  uint64_t magic = kSegmentMagic;
  uint64_t reader = 0;  ///< index into `SegmentHeader::awaited`
};
inline constexpr size_t kNumOfferedFds = 4;

// Requires, below: the geometry passes `check`, so that nothing overflows.

size_t segment_size(const SegmentGeometry& geometry);
/// Start of the header area of `slot`.
size_t header_offset(const SegmentGeometry& geometry, size_t slot);
size_t payload_offset(const SegmentGeometry& geometry, size_t slot);
/// The slot in which bucket `number` lies. Requires: `number` is not 0.
constexpr size_t slot_of(const SegmentGeometry& geometry, uint64_t number) {
  return (number - 1) % geometry.num_slots;
}
/// The bucket that lay in the slot of bucket `number` before it, or 0.
constexpr uint64_t predecessor(const SegmentGeometry& geometry, uint64_t number) {
  return number > geometry.num_slots ? number - geometry.num_slots : 0;
}

}  // namespace weightcast
