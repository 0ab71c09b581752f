#include "weightcast/device/host_copy.h"

#include <algorithm>

#include "weightcast/base/check.h"
#include "weightcast/base/hash.h"
#include "weightcast/device/calibration.h"
#include "weightcast/device/copy_kernels.h"

namespace weightcast {
namespace {

void check_sizes(const Copy& copy) {
  const ConversionWidths width = widths(copy.conversion);
  WEIGHTCAST_CHECK(copy.source.size() % width.source == 0);
  WEIGHTCAST_CHECK(copy.destination.size() % width.destination == 0);
  WEIGHTCAST_CHECK(copy.source.size() / width.source ==
                   copy.destination.size() / width.destination);
  WEIGHTCAST_CHECK(copy.block_digests.empty() ||
                   copy.block_digests.size() == num_digest_blocks(copy.destination.size()));
}

// A block is made where the hash finds it in the cache, and leaves from there past the cache: a
// destination written through the cache would first be read from memory.
void cast_and_digest(CopyKernel kernel, CastLoop cast, const Copy& copy) {
  const ConversionWidths width = widths(copy.conversion);
  alignas(64) std::byte block[kDigestBlockSize];
  for (size_t i = 0; i < copy.block_digests.size(); ++i) {
    const size_t offset = i * kDigestBlockSize;
    const size_t size = std::min(kDigestBlockSize, copy.destination.size() - offset);
    const std::byte* source = copy.source.data() + offset / width.destination * width.source;
    cast(block, source, size / width.destination);
    copy.block_digests[i] = xxh3_64({block, size});
    kernel.copy(copy.destination.data() + offset, block, size);
  }
}

void cast(CopyKernel kernel, const Copy& copy) {
  const CastPair loops = casts_for(kernel.name, copy.conversion);
  if (!copy.block_digests.empty()) return cast_and_digest(kernel, loops.cached, copy);
  const size_t count = copy.destination.size() / widths(copy.conversion).destination;
  loops.streamed(copy.destination.data(), copy.source.data(), count);
}

}  // namespace

// The hash reads the source: the destination, stored past the cache, would come from memory.
void copy_and_digest(CopyKernel kernel, DigestOrder order, const Copy& copy) {
  const size_t size = copy.source.size();
  for (size_t offset = 0; offset < size; offset += order.group_size) {
    const ConstMemoryView group =
        copy.source.subspan(offset, std::min(order.group_size, size - offset));
    const auto digests =
        copy.block_digests.subspan(offset / kDigestBlockSize, num_digest_blocks(group.size()));
    if (order.digest_first) host_digest(group, digests);
    kernel.copy(copy.destination.data() + offset, group.data(), group.size());
    if (!order.digest_first) host_digest(group, digests);
  }
}

void host_copy(const Copy& copy) {
  check_sizes(copy);
  const MeasuredChoice& choice = chosen_kernel();
  const CopyKernel kernel = choice.calibration.winner;
  if (copy.conversion != Conversion::kNone) return cast(kernel, copy);
  if (!copy.block_digests.empty()) return copy_and_digest(kernel, choice.order, copy);
  kernel.copy(copy.destination.data(), copy.source.data(), copy.source.size());
}

void host_digest(ConstMemoryView bytes, std::span<uint64_t> block_digests) {
  WEIGHTCAST_CHECK(block_digests.size() == num_digest_blocks(bytes.size()));
  for (size_t i = 0; i < block_digests.size(); ++i) {
    const size_t offset = i * kDigestBlockSize;
    block_digests[i] =
        xxh3_64(bytes.subspan(offset, std::min(kDigestBlockSize, bytes.size() - offset)));
  }
}

}  // namespace weightcast
