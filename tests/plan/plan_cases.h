// Models that the packer must lay out well, and the headers a sender would make of them.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "weightcast/plan/bucket.h"

namespace weightcast::testing {

/// `size` bytes of U8.
inline TensorMeta bytes_tensor(std::string name, uint64_t size) {
  return {std::move(name), DType::kU8, {size}};
}

/// A model of `count` tensors of every dtype, from nothing to a few buckets. The seed says all.
inline std::vector<TensorMeta> random_metas(uint64_t seed, size_t count, uint64_t bucket_size) {
  std::mt19937_64 random(seed);
  std::vector<TensorMeta> metas;
  for (size_t i = 0; i < count; ++i) {
    const auto all = dtypes();
    const DType dtype = all[random() % all.size()];
    const uint64_t limits[] = {1, 4, 1000, bucket_size, 3 * bucket_size};
    const uint64_t size = random() % limits[random() % 5];
    // Multiples of 8 elements fill their bytes whatever the dtype.
    metas.push_back({"层." + std::to_string(i), dtype, {size / bits(dtype), 8}});
  }
  return metas;
}

/// The headers of one version, with or without metas and with digests of no meaning.
inline std::vector<BucketHeader> make_headers(std::span<const TensorMeta> metas,
                                              uint64_t bucket_size, bool with_metas,
                                              bool with_digests) {
  std::vector<BucketHeader> headers;
  const BucketPlan plan = make_plan(metas, bucket_size);
  for (const PlannedBucket& bucket : plan.buckets) {
    BucketHeader header{.sequence = 3, .index = headers.size(), .used_size = bucket.used_size};
    header.last = headers.size() + 1 == plan.buckets.size();
    header.extents = bucket.extents;
    for (const Extent& extent : bucket.extents) {
      const TensorMeta& meta = metas[extent.tensor];
      if (with_metas && extent.tensor_offset == 0) header.metas.push_back(meta);
      const bool ends = extent.tensor_offset + extent.size == byte_size(meta);
      if (with_digests && ends) header.digests.emplace_back();
    }
    headers.push_back(std::move(header));
  }
  return headers;
}

}  // namespace weightcast::testing
