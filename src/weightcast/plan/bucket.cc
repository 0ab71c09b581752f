#include "weightcast/plan/bucket.h"

#include <algorithm>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

// Upper bounds of what the parts of a bucket's header take once encoded (control/wire.fbs). They
// are part of the packing rules: all ranks close a bucket at the same place, whether or not metas
// and digests travel with it.
constexpr uint64_t kExtentCost = 32;
constexpr uint64_t kDigestCost = 16;
constexpr uint64_t kMetaCost = 80;         // a table: its offsets, padding and fixed fields
constexpr uint64_t kDimensionCost = 8;     // beside a byte for each byte of the name
constexpr uint64_t kFixedCost = 8 + 1024;  // the length word before the header; the root table
constexpr uint64_t kHeaderBudget = kMaxHeaderSize - kFixedCost;
static_assert(kExtentCost + kDigestCost + kMetaCost + kMaxNameSize +
                  kDimensionCost * kMaxDimensions <
              kHeaderBudget);

uint64_t aligned(uint64_t offset) {
  return (offset + kExtentAlignment - 1) / kExtentAlignment * kExtentAlignment;
}

uint64_t meta_cost(const TensorMeta& meta) {
  return kMetaCost + meta.name.size() + kDimensionCost * meta.shape.size();
}

}  // namespace

BucketPacker::BucketPacker(uint64_t bucket_size) : bucket_size_(bucket_size) {
  WEIGHTCAST_CHECK(bucket_size >= kMinBucketSize && bucket_size <= kMaxBucketSize);
}

void BucketPacker::begin_tensor(const TensorMeta& meta) {
  WEIGHTCAST_CHECK(!tensor_open_);
  WEIGHTCAST_CHECK(meta.name.size() <= kMaxNameSize && meta.shape.size() <= kMaxDimensions);
  tensor_size_ = byte_size(meta);
  tensor_offset_ = 0;
  tensor_header_cost_ = kExtentCost + kDigestCost + meta_cost(meta);
  tensor_open_ = true;
}

std::optional<uint64_t> BucketPacker::part_in_open_bucket() const {
  const uint64_t start = aligned(used_);
  if (num_buckets_ == 0 || start > bucket_size_) return std::nullopt;
  if (header_used_ + tensor_header_cost_ > kHeaderBudget) return std::nullopt;
  const uint64_t room = bucket_size_ - start;
  const uint64_t remaining = tensor_size_ - tensor_offset_;
  if (remaining <= room) return remaining;
  const uint64_t part = room / kSplitAlignment * kSplitAlignment;
  if (tensor_size_ <= bucket_size_ || part == 0) return std::nullopt;
  return part;
}

std::optional<Placement> BucketPacker::next() {
  if (!tensor_open_) return std::nullopt;
  std::optional<uint64_t> size = part_in_open_bucket();
  const bool opens_bucket = !size;
  if (opens_bucket) {
    ++num_buckets_;
    used_ = 0;
    header_used_ = 0;
    size = part_in_open_bucket();
    WEIGHTCAST_CHECK(size.has_value());
  }
  Placement placement{.opens_bucket = opens_bucket,
                      .extent = {.tensor = num_tensors_,
                                 .tensor_offset = tensor_offset_,
                                 .bucket_offset = aligned(used_),
                                 .size = *size}};
  used_ = placement.extent.bucket_offset + *size;
  header_used_ += tensor_header_cost_;
  tensor_offset_ += *size;
  tensor_header_cost_ = kExtentCost + kDigestCost;  // of a further part, which brings no meta
  if (tensor_offset_ == tensor_size_) {
    placement.completes_tensor = true;
    tensor_open_ = false;
    ++num_tensors_;
  }
  return placement;
}

BucketPlan make_plan(std::span<const TensorMeta> metas, uint64_t bucket_size) {
  BucketPlan plan;
  BucketPacker packer(bucket_size);
  for (const TensorMeta& meta : metas) {
    packer.begin_tensor(meta);
    while (const std::optional<Placement> placement = packer.next()) {
      if (placement->opens_bucket) plan.buckets.emplace_back();
      plan.buckets.back().extents.push_back(placement->extent);
      plan.buckets.back().used_size = packer.used_size();
      plan.payload_size += placement->extent.size;
      if (placement->completes_tensor && placement->extent.tensor_offset > 0) {
        plan.largest_split = std::max(plan.largest_split, byte_size(meta));
      }
    }
  }
  return plan;
}

}  // namespace weightcast
