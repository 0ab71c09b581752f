#include "weightcast/handoff/segment.h"

#include <fmt/format.h>

namespace weightcast {
namespace {

constexpr uint64_t round_up(uint64_t size) {
  return (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

uint64_t slot_stride(const SegmentGeometry& geometry) {
  return kHeaderAreaSize + round_up(geometry.bucket_size);
}

}  // namespace

Status check(const SegmentGeometry& geometry) {
  if (geometry.bucket_size < kMinBucketSize || geometry.bucket_size > kMaxBucketSize) {
    return Error(Code::kCorruption,
                 fmt::format("shared memory with a bucket size of {}", geometry.bucket_size));
  }
  if (geometry.num_slots == 0 || geometry.num_slots > kMaxSlots) {
    return Error(Code::kCorruption, fmt::format("shared memory of {} slots", geometry.num_slots));
  }
  return {};
}

size_t segment_size(const SegmentGeometry& geometry) {
  return header_offset(geometry, geometry.num_slots);
}

size_t header_offset(const SegmentGeometry& geometry, size_t slot) {
  return round_up(sizeof(SegmentHeader)) + slot * slot_stride(geometry);
}

size_t payload_offset(const SegmentGeometry& geometry, size_t slot) {
  return header_offset(geometry, slot) + kHeaderAreaSize;
}

}  // namespace weightcast
