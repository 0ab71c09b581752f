// The copy and cast loops of one instruction set, as tables of plain function pointers.
// Values, any thread. Files compiled for a wider instruction set include only this of the project,
// so that no inline function they share with others is compiled with their flags.
#pragma once

#include <cstddef>

namespace weightcast {

/// How a loop walks memory: 4-KiB pages that it has in flight at once, and 64-byte lines that it
/// moves in one of them before it turns to the next.
struct Walk {
  size_t num_pages;
  size_t num_lines;
};

/// The first walk is linear. Which one wins differs between machines by more than 3 times, in both
/// directions, so all of them are there to be measured.
inline constexpr Walk kWalks[] = {{1, 2}, {2, 1}, {4, 1}, {4, 2}, {8, 1}, {8, 4}};
inline constexpr size_t kNumWalks = sizeof kWalks / sizeof kWalks[0];
/// What stands behind the name of the instruction set in the name of a kernel, by walk.
inline constexpr const char* kWalkNames[kNumWalks] = {
    "nt_linear", "nt_2_pages", "nt_4_pages", "nt_4_pages_by_2", "nt_8_pages", "nt_8_pages_by_4"};

/// As many as `Conversion` has members besides `kNone`; in that order.
inline constexpr size_t kNumConversions = 5;

/// Copies `size` bytes.
using CopyLoop = void (*)(std::byte* destination, const std::byte* source, size_t size);
/// Narrows `count` elements; any alignment.
using CastLoop = void (*)(std::byte* destination, const std::byte* source, size_t count);

/// Writes through the cache, for a destination that is read again at once; and past it.
struct CastLoops {
  CastLoop cached;
  CastLoop streamed[kNumWalks];
};

struct KernelSet {
  const char* name;
  CopyLoop copies[kNumWalks];  ///< null where the instruction set has no non-temporal stores
  CastLoops casts[kNumConversions];
};

/// Plain C++, for every machine.
const KernelSet& portable_kernels();
#if defined(__x86_64__)
/// Every x86-64. Casts are the portable ones.
const KernelSet& sse2_kernels();
/// Requires: AVX2 and F16C.
const KernelSet& avx2_kernels();
/// Requires: AVX-512F.
const KernelSet& avx512_kernels();

/// The string instruction of x86, which the processor's microcode widens as it sees fit.
void copy_rep_movsb(std::byte* destination, const std::byte* source, size_t size);
#endif

}  // namespace weightcast
