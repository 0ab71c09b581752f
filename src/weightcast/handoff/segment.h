// The layout of the shared memory in which slots lie, and of the memory a reader answers in.
// Values and pure functions. Numbers that came from the other process are checked before use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weightcast/base/result.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {

inline constexpr uint64_t kSegmentMagic = 0x3147455354534357;  // "WCSTSEG1"
inline constexpr uint32_t kMaxSlots = 64;

struct SegmentGeometry {
  uint64_t epoch = 0;
  uint64_t bucket_size = 0;
  uint64_t num_slots = 0;
  friend bool operator==(const SegmentGeometry&, const SegmentGeometry&) = default;
};
/// Errors: `kCorruption` for numbers outside the limits of plan/bucket.h and `kMaxSlots`.
Status check(const SegmentGeometry& geometry);

/// One slot's word, alone on its cache line. Bucket number n (from 1) lies in slot (n - 1) mod
/// `num_slots`.
struct alignas(64) SlotWord {
  /// Publisher's segment: number of the bucket last published here. Reader's memory: number of the
  /// bucket last released here. One writer each; stores release, loads acquire.
  std::atomic<uint64_t> number;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// Start of the publisher's segment; the slots follow, each a header area of `kMaxHeaderSize` bytes
/// (the first 8 give the encoded header's size) and then the payload.
struct SegmentHeader {
  uint64_t magic;
  SegmentGeometry geometry;
  SlotWord published[kMaxSlots];
};

/// Start, and all, of the memory that one reader writes and the publisher reads.
struct ReleaseWords {
  SlotWord released[kMaxSlots];
};

size_t segment_size(const SegmentGeometry& geometry);
size_t header_offset(const SegmentGeometry& geometry, size_t slot);
size_t payload_offset(const SegmentGeometry& geometry, size_t slot);

}  // namespace weightcast
