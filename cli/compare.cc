#include "compare.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weightcast/base/size.h"

namespace weightcast {
namespace {

constexpr uint64_t kBlockSize = kMiB;

Status compare_bytes(const SafetensorsModel& expected, const SafetensorsModel& actual, size_t index,
                     const Interrupts& interrupts) {
  const SafetensorsModel::Tensor& tensor = expected.tensors()[index];
  const uint64_t size = byte_size(tensor.meta);
  std::vector<std::byte> left(std::min(size, kBlockSize));
  std::vector<std::byte> right(left.size());
  for (uint64_t offset = 0; offset < size; offset += kBlockSize) {
    WEIGHTCAST_TRY(interrupts.check());
    const uint64_t block = std::min(kBlockSize, size - offset);
    const std::span<std::byte> ours(left.data(), block);
    const std::span<std::byte> theirs(right.data(), block);
    WEIGHTCAST_TRY(expected.read(tensor, offset, ours));
    WEIGHTCAST_TRY(actual.read(actual.tensors()[index], offset, theirs));
    const auto difference = std::ranges::mismatch(ours, theirs);
    if (difference.in1 == ours.end()) continue;
    return Error(Code::kCorruption,
                 fmt::format("tensor {}: byte {} differs from the source", tensor.meta.name,
                             offset + static_cast<uint64_t>(difference.in1 - ours.begin())));
  }
  return {};
}

}  // namespace

Status compare_models(const SafetensorsModel& expected, const SafetensorsModel& actual,
                      const Interrupts& interrupts) {
  if (expected.tensors().size() != actual.tensors().size()) {
    return Error(Code::kCorruption,
                 fmt::format("{} tensors, the source has {}", actual.tensors().size(),
                             expected.tensors().size()));
  }
  for (size_t i = 0; i < expected.tensors().size(); ++i) {
    const TensorMeta& meta = expected.tensors()[i].meta;
    if (actual.tensors()[i].meta != meta) {
      return Error(Code::kCorruption,
                   fmt::format("tensor number {} is {}, in the source {}", i,
                               describe(actual.tensors()[i].meta), describe(meta)));
    }
    WEIGHTCAST_TRY(compare_bytes(expected, actual, i, interrupts));
  }
  return {};
}

}  // namespace weightcast
