// What every program of the benchmark moves: the same cold tensors, in memory that is resident
// before the clock starts, with bytes that can be checked.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/mapping.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast::bench {

/// A tensor's place in the arena of its process.
struct Tensor {
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// The tensors of a distribution, one behind the other. `large`: 1 to 32 MiB until `payload_size`
/// is reached, the last one cut; `small`: 10 000 of 1 to 64 KiB, whatever `payload_size` says.
/// Sizes come from a fixed seed and are multiples of 64.
std::vector<Tensor> make_tensors(std::string_view distribution, uint64_t payload_size);
uint64_t payload_size(std::span<const Tensor> tensors);
/// Metas as a trainer would announce them, BF16, one dimension.
std::vector<TensorMeta> make_metas(std::span<const Tensor> tensors);

/// Memory for all tensors of one process, resident, in pages as the kernel gives them by default.
class Arena {
 public:
  static Result<Arena> create(uint64_t size);
  std::span<std::byte> bytes() const { return {memory_.data(), memory_.size()}; }

 private:
  explicit Arena(Mapping memory) : memory_(std::move(memory)) {}
  Mapping memory_;
};

/// Makes each aligned 8-byte word of `bytes` a hash of its place, counted from `first_byte`.
/// Requires: `first_byte` is a multiple of 8.
void fill_pattern(std::span<std::byte> bytes, uint64_t first_byte = 0);
/// The first place at which `bytes` is not the pattern, or `bytes.size()`.
uint64_t first_difference(std::span<const std::byte> bytes);

}  // namespace weightcast::bench
