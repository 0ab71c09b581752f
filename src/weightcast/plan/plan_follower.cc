#include <utility>

#include <fmt/format.h>

#include "weightcast/plan/bucket.h"
#include "weightcast/plan/text.h"

namespace weightcast {
namespace {

Error corruption(std::string message) { return Error(Code::kCorruption, std::move(message)); }

std::string describe(const Extent& extent) {
  return fmt::format("tensor {} bytes {}+{} at {}", extent.tensor, extent.tensor_offset,
                     extent.size, extent.bucket_offset);
}

}  // namespace

PlanFollower::PlanFollower(uint64_t bucket_size, std::optional<std::vector<TensorMeta>> announced,
                           bool digests_expected)
    : packer_(bucket_size), announced_(announced.has_value()), digests_expected_(digests_expected) {
  if (!announced) return;
  metas_ = *std::move(announced);
  for (const TensorMeta& meta : metas_) {
    announced_status_ = check_new(meta);
    if (!announced_status_) return;
  }
}

Status PlanFollower::accept(const BucketHeader& header) {
  Status status = accept_header(header);
  if (!status) return status.error().context(fmt::format("bucket {}", header.index));
  return status;
}

Status PlanFollower::accept_header(const BucketHeader& header) {
  WEIGHTCAST_TRY(announced_status_);
  if (finished_) return corruption("comes after the last bucket");
  if (header.index != num_buckets_) {
    return corruption(fmt::format("bucket {} was due", num_buckets_));
  }
  if (num_buckets_ == 0) sequence_ = header.sequence;
  if (header.sequence != sequence_) {
    return corruption(fmt::format("belongs to attempt {}, not {}", header.sequence, sequence_));
  }
  const uint64_t complete_before = num_complete_;
  WEIGHTCAST_TRY(accept_metas(header.metas));
  WEIGHTCAST_TRY(accept_extents(header.extents));
  WEIGHTCAST_TRY(accept_end(header, num_complete_ - complete_before));
  ++num_buckets_;
  finished_ = header.last;
  return {};
}

Status PlanFollower::check_new(const TensorMeta& meta) {
  if (const Status status = check(meta); !status) return corruption(status.error().message());
  if (!names_.insert(meta.name).second) {
    return corruption(fmt::format("tensor {} comes twice", printable(meta.name)));
  }
  return {};
}

Status PlanFollower::accept_metas(std::span<const TensorMeta> metas) {
  if (announced_ && !metas.empty()) return corruption("metas that were announced come again");
  for (const TensorMeta& meta : metas) {
    WEIGHTCAST_TRY(check_new(meta));
    metas_.push_back(meta);
  }
  return {};
}

Status PlanFollower::accept_extents(std::span<const Extent> extents) {
  bool first = true;
  for (const Extent& extent : extents) {
    std::optional<Placement> placement = packer_.next();
    if (!placement) {
      if (num_complete_ == metas_.size()) {
        return corruption(fmt::format("{}: no such tensor", describe(extent)));
      }
      packer_.begin_tensor(metas_[num_complete_]);
      placement = packer_.next();
    }
    const std::string_view name = metas_[placement->extent.tensor].name;
    if (extent != placement->extent) {
      return corruption(fmt::format("tensor {}: {} where {} was due", printable(name),
                                    describe(extent), describe(placement->extent)));
    }
    if (placement->opens_bucket != first) {
      return corruption(fmt::format("tensor {}: {} belongs into the {} bucket", printable(name),
                                    describe(extent), first ? "previous" : "next"));
    }
    first = false;
    payload_size_ += extent.size;
    if (placement->completes_tensor) ++num_complete_;
  }
  return {};
}

Status PlanFollower::accept_end(const BucketHeader& header, uint64_t num_completed) const {
  const bool empty_version = num_buckets_ == 0 && header.last && metas_.empty();
  if (header.extents.empty() && !empty_version) return corruption("holds no tensor");
  if (header.used_size != packer_.used_size()) {
    return corruption(fmt::format("{} bytes used where its extents take {}", header.used_size,
                                  packer_.used_size()));
  }
  // The tensor that the last extent belongs to may go on; every other meta needs its extents here.
  const bool open = !header.extents.empty() && num_complete_ == header.extents.back().tensor;
  const uint64_t num_begun = num_complete_ + (open ? 1 : 0);
  if (!announced_ && num_begun != metas_.size()) {
    return corruption(fmt::format("brings {} metas too many", metas_.size() - num_begun));
  }
  const uint64_t wanted_digests = digests_expected_ ? num_completed : 0;
  if (header.digests.size() != wanted_digests) {
    return corruption(
        fmt::format("{} digests instead of {}", header.digests.size(), wanted_digests));
  }
  if (header.last && num_complete_ < metas_.size()) {
    return corruption(fmt::format("the last, but tensor {} is not complete",
                                  printable(metas_[num_complete_].name)));
  }
  if (announced_ && !header.last && num_complete_ == metas_.size()) {
    return corruption("not the last, but every tensor is complete");
  }
  return {};
}

}  // namespace weightcast
