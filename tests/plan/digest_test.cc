#include "weightcast/plan/digest.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "../support/pattern.h"

namespace weightcast {
namespace {

constexpr size_t kBlock = 64 * 1024;

std::vector<uint64_t> block_digests(std::span<const std::byte> bytes) {
  std::vector<uint64_t> digests;
  for (size_t at = 0; at < bytes.size(); at += kBlock) {
    digests.push_back(xxh3_64(bytes.subspan(at, std::min(kBlock, bytes.size() - at))));
  }
  return digests;
}

TEST(TensorDigest, IsTheHashOfLittleEndianBlockHashes) {
  const auto bytes = testing::make_pattern({"t", DType::kU8, {3 * kBlock + 5}}, 1, 2);
  const std::vector<uint64_t> blocks = block_digests(bytes);
  ASSERT_EQ(blocks.size(), 4u);
  std::vector<std::byte> text;
  for (const uint64_t block : blocks) {
    for (unsigned i = 0; i < 8; ++i) text.push_back(static_cast<std::byte>(block >> (8 * i)));
  }
  TensorDigest digest;
  digest.add(blocks);
  EXPECT_EQ(digest.finish(), xxh3_128(text));
}

TEST(TensorDigest, DoesNotDependOnHowBlocksArrive) {
  const std::array<uint64_t, 3> blocks = {7, 8, 9};
  TensorDigest whole;
  whole.add(blocks);
  const Hash128 expected = whole.finish();
  TensorDigest parts;
  parts.add(std::span(blocks).first(1));
  parts.add({});
  parts.add(std::span(blocks).subspan(1));
  EXPECT_EQ(parts.finish(), expected);
  EXPECT_EQ(parts.finish(), xxh3_128({})) << "finish starts anew";
}

// The bytes of docs/design.md, "Digests", written out by hand.
TEST(VersionDigest, CoversTheDocumentedBytes) {
  const TensorMeta meta{"ab", DType::kBf16, {2, 3}};
  Hash128 tensor;
  tensor.bytes.fill(std::byte{0x5a});
  std::string text(
      "\2\0\0\0\0\0\0\0ab\x0b\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"
      "\x0c\0\0\0\0\0\0\0",
      8 + 2 + 1 + 8 + 8 + 8 + 8);
  VersionDigest metas(DigestKind::kMetas);
  metas.add(meta, tensor);
  EXPECT_EQ(metas.finish(), xxh3_128(std::as_bytes(std::span(text))));
  EXPECT_EQ(metas.finish(), digest_metas(std::array{meta}));
  text += std::string(16, 0x5a);
  VersionDigest bytes(DigestKind::kBytes);
  bytes.add(meta, tensor);
  EXPECT_EQ(bytes.finish(), xxh3_128(std::as_bytes(std::span(text))));
  EXPECT_EQ(bytes.num_tensors(), 1u);
}

TEST(VersionDigest, ChangesWithEveryField) {
  const TensorMeta meta{"ab", DType::kBf16, {2, 3}};
  const std::vector<std::vector<TensorMeta>> versions = {
      {},
      {meta},
      {meta, meta},
      {{"ac", DType::kBf16, {2, 3}}},
      {{"ab", DType::kF16, {2, 3}}},
      {{"ab", DType::kBf16, {3, 2}}},
      {{"ab", DType::kBf16, {6}}},
      {{"ab", DType::kBf16, {2, 3, 1}}},
      {meta, {"ac", DType::kBf16, {2, 3}}},
      {{"ac", DType::kBf16, {2, 3}}, meta},
  };
  std::set<Hash128> seen;
  for (const auto& metas : versions) EXPECT_TRUE(seen.insert(digest_metas(metas)).second);
  VersionDigest digest(DigestKind::kBytes);
  digest.add(meta, Hash128{});
  EXPECT_TRUE(seen.insert(digest.finish()).second);
  VersionDigest other(DigestKind::kBytes);
  other.add(meta, xxh3_128({}));
  EXPECT_TRUE(seen.insert(other.finish()).second);
}

}  // namespace
}  // namespace weightcast
