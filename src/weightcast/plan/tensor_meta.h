// What is known of a tensor without its bytes.
// Values: copyable, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/plan/dtype.h"

namespace weightcast {

inline constexpr size_t kMaxNameSize = 16 * 1024;
inline constexpr size_t kMaxDimensions = 64;
/// No tensor has more bytes, so that sums of a few sizes can not overflow.
inline constexpr uint64_t kMaxTensorSize = uint64_t{1} << 56;

struct TensorMeta {
  std::string name;  ///< UTF-8, not empty, unique within a version
  DType dtype = DType::kU8;
  std::vector<uint64_t> shape;  ///< empty for a scalar; a zero makes a tensor without bytes

  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

/// Bytes the elements take. Errors: `kBadInput` when the product overflows `kMaxTensorSize`, or
/// when a packed tensor does not fill its last byte.
Result<uint64_t> checked_size(const TensorMeta& meta);
/// The same for metas that were checked before. Requires: `checked_size` is no error.
uint64_t byte_size(const TensorMeta& meta);

/// Checks name (UTF-8, size), number of dimensions and size of metas that came from outside.
Status check(const TensorMeta& meta);
/// `model.embed BF16 [32000, 4096]`.
std::string describe(const TensorMeta& meta);

}  // namespace weightcast
