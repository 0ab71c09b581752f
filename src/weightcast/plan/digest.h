// What two ranks compare to know that they hold the same weights (docs/design.md, "Digests").
// One thread an object.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weightcast/base/hash.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

/// What a version digest covers.
enum class DigestKind : uint8_t { kMetas = 0, kBytes = 1 };

/// XXH3-128 over the little-endian XXH3-64 values of a tensor's 64 KiB blocks, in order.
class TensorDigest {
 public:
  void add(std::span<const uint64_t> block_digests);
  /// The digest of what was added; starts anew.
  Hash128 finish();

 private:
  std::vector<uint64_t> blocks_;
};

/// XXH3-128 over (name size, name, dtype code, number of dimensions, dimensions, byte size, tensor
/// digest) of each tensor in the order sent; integers are little-endian u64, the code one byte.
/// With `kMetas` the tensor digests are left out.
class VersionDigest {
 public:
  explicit VersionDigest(DigestKind kind) : kind_(kind) {}
  void add(const TensorMeta& meta, const Hash128& tensor_digest);
  [[nodiscard]] Hash128 finish() const;
  [[nodiscard]] DigestKind kind() const { return kind_; }
  [[nodiscard]] uint64_t num_tensors() const { return num_tensors_; }

 private:
  DigestKind kind_;
  uint64_t num_tensors_ = 0;
  std::vector<std::byte> bytes_;
};

/// The digest of metas alone, by which a rank says which tensors it expects.
Hash128 digest_metas(std::span<const TensorMeta> metas);

}  // namespace weightcast
