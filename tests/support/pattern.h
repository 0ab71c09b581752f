// Bytes that differ at every place of every tensor, so that a byte in the wrong place is seen.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weightcast/plan/tensor_meta.h"

namespace weightcast::testing {

/// Byte `offset` + i of tensor `tensor` in version `version`, for each i.
void fill_pattern(std::span<std::byte> bytes, uint64_t version, uint64_t tensor,
                  uint64_t offset = 0);

/// The first i at which `bytes` is not the pattern, or `bytes.size()`.
size_t first_difference(std::span<const std::byte> bytes, uint64_t version, uint64_t tensor,
                        uint64_t offset = 0);

/// The whole tensor as the pattern has it.
std::vector<std::byte> make_pattern(const TensorMeta& meta, uint64_t version, uint64_t tensor);

}  // namespace weightcast::testing
