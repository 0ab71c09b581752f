#include "models.h"

#include <random>

#include <fmt/format.h>

namespace weightcast::testing {

std::vector<TensorMeta> awkward_model(uint64_t bucket_size) {
  std::vector<TensorMeta> metas{
      {"empty", DType::kF32, {0}},           {"scalar", DType::kF64, {}},
      {"three_bytes", DType::kU8, {3}},      {"after_three_bytes", DType::kF32, {5, 7}},
      {"bf16", DType::kBf16, {3, 1, 11}},    {"int64", DType::kI64, {9}},
      {"flags", DType::kBool, {13}},         {"fp8", DType::kF8E4M3, {17, 3}},
      {"packed_4_bits", DType::kF4, {6, 5}}, {"complex", DType::kC64, {2, 3}},
      {"層.重み", DType::kF16, {31}},        {"empty_matrix", DType::kBf16, {4, 0, 4}},
  };
  for (const uint64_t buckets : {1u, 2u, 3u}) {
    for (const int64_t more : {-1, 0, 1}) {
      const auto size = static_cast<uint64_t>(static_cast<int64_t>(buckets * bucket_size) + more);
      metas.push_back({fmt::format("buckets_{}_{:+}", buckets, more), DType::kI8, {size}});
    }
  }
  metas.push_back({"buckets_7.3", DType::kU16, {bucket_size * 73 / 20, 1}});
  metas.push_back({"last_empty", DType::kU8, {0}});
  return metas;
}

std::vector<TensorMeta> random_model(size_t count, uint64_t max_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<uint64_t> size(1, max_size);
  std::vector<TensorMeta> metas;
  for (size_t i = 0; i < count; ++i) {
    metas.push_back({fmt::format("model.layers.{}.weight", i), DType::kU8, {size(random)}});
  }
  return metas;
}

}  // namespace weightcast::testing
