#include "workload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "weightcast/base/check.h"
#include "weightcast/base/size.h"

namespace weightcast::bench {
namespace {

constexpr uint64_t kSeed = 20'240'601;
constexpr uint64_t kGrain = 64;

// splitmix64: its own state is enough, and it is the same on every compiler.
uint64_t mix(uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t draw(uint64_t number, uint64_t smallest, uint64_t largest) {
  const uint64_t steps = (largest - smallest) / kGrain + 1;
  return smallest + mix(kSeed + number) % steps * kGrain;
}

}  // namespace

std::vector<Tensor> make_tensors(std::string_view distribution, uint64_t payload_size) {
  const bool small = distribution == "small";
  WEIGHTCAST_CHECK(small || distribution == "large");
  constexpr uint64_t kSmallTensors = 10'000;
  std::vector<Tensor> tensors;
  uint64_t end = 0;
  while (small ? tensors.size() < kSmallTensors : end < payload_size) {
    const uint64_t number = tensors.size();
    const uint64_t size = small ? draw(number, kKiB, 64 * kKiB)
                                : std::min(draw(number, kMiB, 32 * kMiB), payload_size - end);
    tensors.push_back({end, size});
    end += size;
  }
  return tensors;
}

uint64_t payload_size(std::span<const Tensor> tensors) {
  return tensors.empty() ? 0 : tensors.back().offset + tensors.back().size;
}

std::vector<TensorMeta> make_metas(std::span<const Tensor> tensors) {
  std::vector<TensorMeta> metas;
  metas.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    metas.push_back(
        {fmt::format("model.layers.{}.weight", metas.size()), DType::kBf16, {tensor.size / 2}});
  }
  return metas;
}

// Not Mapping::anonymous, which asks for huge pages: the tensors of a trainer that come from its
// allocator have whatever pages the kernel gives by default.
Result<Arena> Arena::create(uint64_t size) {
  if (size == 0) return Arena(Mapping());
  WEIGHTCAST_ASSIGN(Mapping memory, Mapping::anonymous(size));
  if (madvise(memory.data(), memory.size(), MADV_NOHUGEPAGE) != 0) {
    return system_error(errno, "madvise of the arena");
  }
  std::memset(memory.data(), 0xa5, memory.size());  // resident, and never the pattern by chance
  return Arena(std::move(memory));
}

void fill_pattern(std::span<std::byte> bytes, uint64_t first_byte) {
  const uint64_t whole = bytes.size() / 8 * 8;
  for (uint64_t at = 0; at < whole; at += 8) {
    const uint64_t word = mix((first_byte + at) / 8);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  const uint64_t word = mix((first_byte + whole) / 8);
  std::memcpy(bytes.data() + whole, &word, bytes.size() - whole);
}

uint64_t first_difference(std::span<const std::byte> bytes) {
  const uint64_t whole = bytes.size() / 8 * 8;
  uint64_t at = 0;
  for (; at < whole; at += 8) {
    uint64_t found = 0;
    std::memcpy(&found, bytes.data() + at, 8);
    if (found != mix(at / 8)) break;
  }
  const uint64_t word = mix(at / 8);
  for (uint64_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
    if (std::memcmp(bytes.data() + at + i, reinterpret_cast<const std::byte*>(&word) + i, 1) != 0) {
      return at + i;
    }
  }
  return bytes.size();
}

}  // namespace weightcast::bench
