#include "weightcast/plan/tensor_meta.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weightcast/base/check.h"
#include "weightcast/plan/text.h"

namespace weightcast {

Result<uint64_t> checked_size(const TensorMeta& meta) {
  // A zero makes the tensor empty wherever it stands, so other dimensions can not overflow it.
  if (std::ranges::find(meta.shape, uint64_t{0}) != meta.shape.end()) return uint64_t{0};
  const uint64_t element_bits = bits(meta.dtype);
  const uint64_t max_elements = kMaxTensorSize * 8 / element_bits;
  uint64_t elements = 1;
  for (const uint64_t dimension : meta.shape) {
    if (dimension > max_elements / elements) {
      return Error(Code::kBadInput, fmt::format("tensor {}: larger than the {} bytes that a tensor "
                                                "may have",
                                                describe(meta), kMaxTensorSize));
    }
    elements *= dimension;
  }
  const uint64_t size_bits = elements * element_bits;
  if (size_bits % 8 != 0) {
    return Error(Code::kBadInput, fmt::format("tensor {}: {} elements of {} bits do not fill their "
                                              "last byte",
                                              describe(meta), elements, element_bits));
  }
  return size_bits / 8;
}

uint64_t byte_size(const TensorMeta& meta) {
  const Result<uint64_t> size = checked_size(meta);
  WEIGHTCAST_CHECK(size.has_value());
  return *size;
}

Status check(const TensorMeta& meta) {
  if (meta.name.empty()) return Error(Code::kBadInput, "a tensor has an empty name");
  if (meta.name.size() > kMaxNameSize) {
    return Error(Code::kBadInput,
                 fmt::format("tensor {}: its name has {} bytes, more than {}", printable(meta.name),
                             meta.name.size(), kMaxNameSize));
  }
  if (!is_utf8(meta.name)) {
    return Error(Code::kBadInput,
                 fmt::format("tensor {}: its name is not UTF-8", printable(meta.name)));
  }
  const auto code = static_cast<uint8_t>(meta.dtype);
  if (!dtype_from_code(code)) {
    return Error(Code::kBadInput,
                 fmt::format("tensor {}: unknown dtype code {}", printable(meta.name), code));
  }
  if (meta.shape.size() > kMaxDimensions) {
    return Error(Code::kBadInput,
                 fmt::format("tensor {}: {} dimensions, more than {}", printable(meta.name),
                             meta.shape.size(), kMaxDimensions));
  }
  WEIGHTCAST_TRY(checked_size(meta));
  return {};
}

std::string describe(const TensorMeta& meta) {
  return fmt::format("{} {} [{}]", printable(meta.name), name(meta.dtype),
                     fmt::join(meta.shape, ", "));
}

}  // namespace weightcast
