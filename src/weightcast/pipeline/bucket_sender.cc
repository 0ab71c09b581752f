#include "weightcast/pipeline/bucket_sender.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/fault.h"
#include "weightcast/base/size.h"
#include "weightcast/pipeline/conversion.h"

namespace weightcast {
namespace {

// What a reader fills at a time: its bytes are still in the cache when they are digested.
constexpr uint64_t kReadSize = kMiB;
static_assert(kReadSize % kDigestBlockSize == 0);

// The digests of the blocks from byte `offset` of an extent on, `size` bytes long.
std::span<uint64_t> blocks_of(std::span<uint64_t> block_digests, uint64_t offset, uint64_t size) {
  if (block_digests.empty()) return {};
  return block_digests.subspan(offset / kDigestBlockSize, num_digest_blocks(size));
}

}  // namespace

std::vector<TensorMeta> cast_metas(std::span<const TensorMeta> metas, std::optional<DType> cast) {
  std::vector<TensorMeta> result(metas.begin(), metas.end());
  if (cast) {
    for (TensorMeta& meta : result) meta.dtype = cast_dtype(meta.dtype, *cast);
  }
  return result;
}

BucketSender::BucketSender(BucketSenderConfig config, SlotRing& ring, SlotStore& store,
                           Stream& stream, Wait wait)
    : config_(std::move(config)),
      ring_(ring),
      store_(store),
      stream_(stream),
      wait_(std::move(wait)),
      packer_(config_.bucket_size) {
  if (config_.announced) metas_.reserve(config_.announced->size());
}

Status BucketSender::push(const TensorMeta& source_meta, ConstMemoryView source) {
  WEIGHTCAST_ASSIGN(const TensorMeta* meta, begin(source_meta));
  if (source.size() != byte_size(source_meta)) {
    return Error(Code::kBadInput,
                 fmt::format("{} has {} bytes, not the {} that were passed", describe(source_meta),
                             byte_size(source_meta), source.size()));
  }
  const Conversion conversion = conversion_between(source_meta.dtype, meta->dtype);
  const ConversionWidths width = widths(conversion);
  return place_all([&](uint64_t offset, MemoryView destination, std::span<uint64_t> digests) {
    const auto bytes = source.subspan(offset / width.destination * width.source,
                                      destination.size() / width.destination * width.source);
    return stream_.copy({destination, bytes, conversion, digests});
  });
}

Status BucketSender::push(const TensorMeta& source_meta, TensorReader& reader) {
  WEIGHTCAST_ASSIGN(const TensorMeta* meta, begin(source_meta));
  const Conversion conversion = conversion_between(source_meta.dtype, meta->dtype);
  return place_all([&](uint64_t offset, MemoryView destination, std::span<uint64_t> digests) {
    return fill_from_reader(reader, conversion, offset, destination, digests);
  });
}

Result<const TensorMeta*> BucketSender::begin(const TensorMeta& source_meta) {
  WEIGHTCAST_TRY(check(source_meta));
  if (config_.announced) {
    const size_t index = metas_.size();
    if (index == config_.announced->size()) {
      return Error(Code::kBadInput, fmt::format("{} is one tensor more than the {} announced",
                                                describe(source_meta), index));
    }
    const TensorMeta& announced = (*config_.announced)[index];
    if (announced != source_meta) {
      return Error(Code::kBadInput, fmt::format("tensor {} is {}, but {} was announced", index,
                                                describe(source_meta), describe(announced)));
    }
  } else if (!names_.insert(source_meta.name).second) {
    return Error(Code::kBadInput, fmt::format("tensor name {} comes twice", source_meta.name));
  }
  TensorMeta& meta = metas_.emplace_back(source_meta);
  if (config_.cast) meta.dtype = cast_dtype(meta.dtype, *config_.cast);
  payload_size_ += byte_size(meta);
  packer_.begin_tensor(meta);
  return &meta;
}

Status BucketSender::place_all(const Fill& fill) {
  while (const auto placement = packer_.next()) WEIGHTCAST_TRY(place(*placement, fill));
  return {};
}

Status BucketSender::place(const Placement& placement, const Fill& fill) {
  if (placement.opens_bucket) WEIGHTCAST_TRY(open_bucket());
  const auto started = Clock::now();
  const Extent& extent = placement.extent;
  const uint64_t end = extent.bucket_offset + extent.size;
  WEIGHTCAST_TRY(store_.make_resident(open_->slot, end));
  BucketHeader& header = open_->header;
  header.extents.push_back(extent);
  header.used_size = std::max(header.used_size, end);
  if (!config_.announced && extent.tensor_offset == 0) header.metas.push_back(metas_.back());
  open_->completes_tensor.push_back(placement.completes_tensor);

  std::span<uint64_t> digests;
  if (config_.checksum) {
    const size_t first = open_->block_digests.size();
    open_->block_digests.resize(first + num_digest_blocks(extent.size));
    digests = std::span(open_->block_digests).subspan(first);
  }
  const MemoryView slot = store_.payload(open_->slot);
  if (extent.size > 0) {
    WEIGHTCAST_TRY(
        fill(extent.tensor_offset, slot.subspan(extent.bucket_offset, extent.size), digests));
  }
  pack_seconds_ += seconds_between(started, Clock::now());
  return {};
}

Status BucketSender::open_bucket() {
  if (open_ != nullptr) WEIGHTCAST_TRY(close_bucket(false));
  const auto started = Clock::now();
  WEIGHTCAST_TRY(wait_([this](Deadline deadline) -> Status {
    WEIGHTCAST_ASSIGN(open_, ring_.acquire(deadline));
    return {};
  }));
  wait_seconds_ += seconds_between(started, Clock::now());
  open_->header.sequence = config_.sequence;
  open_->header.index = num_buckets_++;
  return {};
}

Status BucketSender::close_bucket(bool last) {
  open_->header.last = last;
  WEIGHTCAST_TRY(stream_.record(*open_->packed));
  const size_t slot = std::exchange(open_, nullptr)->slot;
  ring_.hand_over();
  fault_point("middle");
  if (config_.overlap) return {};
  const auto started = Clock::now();
  WEIGHTCAST_TRY(wait_([this](Deadline deadline) { return ring_.wait_moved(deadline); }));
  WEIGHTCAST_TRY(
      wait_([this, slot](Deadline deadline) { return store_.wait_free(slot, deadline); }));
  wait_seconds_ += seconds_between(started, Clock::now());
  return {};
}

Status BucketSender::fill_from_reader(TensorReader& reader, Conversion conversion, uint64_t offset,
                                      MemoryView destination, std::span<uint64_t> block_digests) {
  for (uint64_t done = 0; done < destination.size(); done += kReadSize) {
    const uint64_t size = std::min(kReadSize, destination.size() - done);
    const MemoryView part = destination.subspan(done, size);
    const std::span<uint64_t> digests = blocks_of(block_digests, done, size);
    if (conversion != Conversion::kNone) {
      WEIGHTCAST_TRY(read_converted(reader, conversion, offset + done, part, digests));
      continue;
    }
    WEIGHTCAST_TRY(reader.read(offset + done, part));
    if (!digests.empty()) WEIGHTCAST_TRY(stream_.digest(part, digests));
  }
  return {};
}

Status BucketSender::read_converted(TensorReader& reader, Conversion conversion, uint64_t offset,
                                    MemoryView destination, std::span<uint64_t> block_digests) {
  constexpr uint64_t kWidestRatio = 4;  // F64 to BF16
  if (scratch_.size() == 0) {
    WEIGHTCAST_ASSIGN(scratch_, Mapping::anonymous(kReadSize * kWidestRatio));
  }
  const ConversionWidths width = widths(conversion);
  const MemoryView source(scratch_.data(), destination.size() / width.destination * width.source);
  WEIGHTCAST_TRY(reader.read(offset / width.destination * width.source, source));
  WEIGHTCAST_TRY(stream_.copy({destination, source, conversion, block_digests}));
  // The scratch is read into again at once; on an inline stream this costs nothing.
  return stream_.synchronize(Deadline::after(std::chrono::minutes(1)));
}

Status BucketSender::finish() {
  if (config_.announced && metas_.size() < config_.announced->size()) {
    return Error(Code::kBadInput,
                 fmt::format("{} tensors were announced, {} were pushed; the next is {}",
                             config_.announced->size(), metas_.size(),
                             describe((*config_.announced)[metas_.size()])));
  }
  if (open_ == nullptr) WEIGHTCAST_TRY(open_bucket());  // a version without tensors
  WEIGHTCAST_TRY(close_bucket(true));
  return wait_([this](Deadline deadline) { return ring_.wait_moved(deadline); });
}

}  // namespace weightcast
