#include "weightcast/device/copy_kernels.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

void copy_memcpy(std::byte* destination, const std::byte* source, size_t size) {
  if (size != 0) std::memcpy(destination, source, size);
}

#if defined(__x86_64__)
// clang 14 does not take "f16c" for __builtin_cpu_supports. Whether the system saves the registers
// that it needs is answered by "avx2".
bool cpu_has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

std::vector<const KernelSet*> find_kernel_sets() {
  std::vector<const KernelSet*> sets{&portable_kernels()};
#if defined(__x86_64__)
  sets.push_back(&sse2_kernels());
  if (__builtin_cpu_supports("avx2") && cpu_has_f16c()) sets.push_back(&avx2_kernels());
  if (__builtin_cpu_supports("avx512f")) sets.push_back(&avx512_kernels());
#endif
  return sets;
}

struct Row {
  std::string name;
  CopyLoop copy;
  const KernelSet* set;
  size_t walk;
};

std::vector<Row> make_rows() {
  const KernelSet* widest = kernel_sets().back();
  std::vector<Row> rows{{"memcpy", copy_memcpy, widest, 0}};
#if defined(__x86_64__)
  rows.push_back({"rep_movsb", copy_rep_movsb, widest, 0});
#endif
  for (const KernelSet* set : kernel_sets()) {
    for (size_t walk = 0; walk < kNumWalks; ++walk) {
      if (set->copies[walk] == nullptr) continue;
      rows.push_back(
          {std::string(set->name) + "_" + kWalkNames[walk], set->copies[walk], set, walk});
    }
  }
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

}  // namespace

std::span<const KernelSet* const> kernel_sets() {
  static const std::vector<const KernelSet*> sets = find_kernel_sets();
  return sets;
}

std::span<const CopyKernel> copy_kernels() {
  static const std::vector<CopyKernel> kernels = [] {
    std::vector<CopyKernel> made;
    for (const Row& row : rows()) made.push_back({row.name, row.copy});
    return made;
  }();
  return kernels;
}

std::vector<CopyKernel> calibration_candidates() {
  std::vector<CopyKernel> candidates;
  for (const Row& row : rows()) {
    if (row.set == kernel_sets().back()) candidates.push_back({row.name, row.copy});
  }
  return candidates;
}

CastPair casts_for(std::string_view kernel, Conversion conversion) {
  WEIGHTCAST_CHECK(conversion != Conversion::kNone);
  const size_t index = static_cast<size_t>(conversion) - 1;
  for (const Row& row : rows()) {
    if (row.name != kernel) continue;
    const CastLoops& loops = row.set->casts[index];
    return {loops.cached, loops.streamed[row.walk]};
  }
  const CastLoops& loops = kernel_sets().back()->casts[index];
  return {loops.cached, loops.streamed[0]};
}

}  // namespace weightcast
