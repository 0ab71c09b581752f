#include "weightcast/plan/digest.h"

#include <algorithm>
#include <array>
#include <bit>

namespace weightcast {
namespace {

std::array<std::byte, 8> little_endian(uint64_t value) {
  auto bytes = std::bit_cast<std::array<std::byte, 8>>(value);
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  return bytes;
}

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void append(std::vector<std::byte>& bytes, uint64_t value) { append(bytes, little_endian(value)); }

}  // namespace

void TensorDigest::add(std::span<const uint64_t> block_digests) {
  blocks_.insert(blocks_.end(), block_digests.begin(), block_digests.end());
}

Hash128 TensorDigest::finish() {
  if constexpr (std::endian::native == std::endian::big) {
    for (uint64_t& block : blocks_) block = std::bit_cast<uint64_t>(little_endian(block));
  }
  const Hash128 digest = xxh3_128(std::as_bytes(std::span(blocks_)));
  blocks_.clear();
  return digest;
}

void VersionDigest::add(const TensorMeta& meta, const Hash128& tensor_digest) {
  append(bytes_, uint64_t{meta.name.size()});
  append(bytes_, std::as_bytes(std::span(meta.name)));
  bytes_.push_back(static_cast<std::byte>(meta.dtype));
  append(bytes_, uint64_t{meta.shape.size()});
  for (const uint64_t dimension : meta.shape) append(bytes_, dimension);
  append(bytes_, byte_size(meta));
  if (kind_ == DigestKind::kBytes) append(bytes_, tensor_digest.bytes);
  ++num_tensors_;
}

Hash128 VersionDigest::finish() const { return xxh3_128(bytes_); }

Hash128 digest_metas(std::span<const TensorMeta> metas) {
  VersionDigest digest(DigestKind::kMetas);
  for (const TensorMeta& meta : metas) digest.add(meta, Hash128{});
  return digest.finish();
}

}  // namespace weightcast
