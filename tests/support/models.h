// Lists of tensors that are awkward in every way the engine has to bear.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "weightcast/plan/tensor_meta.h"

namespace weightcast::testing {

/// Zero-element tensors, scalars, odd sizes, unaligned mixes of dtypes, UTF-8 names, and tensors of
/// k buckets - 1, k buckets, k buckets + 1 and 7.3 buckets.
std::vector<TensorMeta> awkward_model(uint64_t bucket_size);

/// `count` tensors of 1 to `max_size` bytes, sizes drawn from `seed`.
std::vector<TensorMeta> random_model(size_t count, uint64_t max_size, uint64_t seed);

}  // namespace weightcast::testing
