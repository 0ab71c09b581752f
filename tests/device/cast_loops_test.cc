// The casts of every instruction set of this CPU against arithmetic on doubles.
#include <cstring>
#include <initializer_list>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <gtest/gtest.h>

#include "guarded.h"
#include "reference_cast.h"
#include "weightcast/device/copy_kernels.h"
#include "weightcast/device/kernel_set.h"

namespace weightcast {
namespace {

using testing::Guarded;
using testing::interesting_source;
using testing::reference_cast;

constexpr Conversion kConversions[kNumConversions] = {Conversion::kF32ToBf16, Conversion::kF32ToF16,
                                                      Conversion::kF64ToF32, Conversion::kF64ToBf16,
                                                      Conversion::kF64ToF16};

const CastLoops& loops_of(const KernelSet& set, Conversion conversion) {
  return set.casts[static_cast<size_t>(conversion) - 1];
}

// The loop through the cache, then one a walk.
std::vector<CastLoop> all_loops(const KernelSet& set, Conversion conversion) {
  const CastLoops& loops = loops_of(set, conversion);
  std::vector<CastLoop> all{loops.cached};
  all.insert(all.end(), std::begin(loops.streamed), std::end(loops.streamed));
  return all;
}

// The index of the first element that differs, or -1.
ptrdiff_t first_wrong(ConstMemoryView got, ConstMemoryView wanted, size_t width) {
  for (size_t i = 0; i < wanted.size(); i += width) {
    if (std::memcmp(&got[i], &wanted[i], width) != 0) return static_cast<ptrdiff_t>(i / width);
  }
  return -1;
}

void expect_reference(const KernelSet& set, Conversion conversion, ConstMemoryView source,
                      ConstMemoryView wanted) {
  const ConversionWidths width = widths(conversion);
  size_t number = 0;
  for (const CastLoop loop : all_loops(set, conversion)) {
    Guarded destination(wanted.size(), 0);
    loop(destination.bytes().data(), source.data(), source.size() / width.source);
    ASSERT_EQ(first_wrong(destination.bytes(), wanted, width.destination), -1)
        << set.name << " conversion " << static_cast<int>(conversion) << " loop " << number;
    ASSERT_TRUE(destination.intact());
    ++number;
  }
}

TEST(CastLoops, RoundToNearestEvenOverEveryExponentTieAndNan) {
  for (const Conversion conversion : kConversions) {
    const auto source = interesting_source(conversion);
    const auto wanted = reference_cast(conversion, source);
    for (const KernelSet* set : kernel_sets()) expect_reference(*set, conversion, source, wanted);
  }
}

struct Placement {
  size_t source_offset;
  size_t destination_offset;
};

void expect_placed(const KernelSet& set, Conversion conversion, size_t count, Placement placement) {
  const ConversionWidths width = widths(conversion);
  static const auto kFloats = interesting_source(Conversion::kF32ToBf16);
  static const auto kDoubles = interesting_source(Conversion::kF64ToF32);
  const auto& values = width.source == 4 ? kFloats : kDoubles;
  Guarded source(count * width.source, placement.source_offset);
  std::memcpy(source.bytes().data(), values.data() + values.size() / 3 / 8 * 8,
              count * width.source);
  const auto wanted = reference_cast(conversion, source.bytes());
  for (const CastLoop loop : all_loops(set, conversion)) {
    Guarded destination(wanted.size(), placement.destination_offset);
    loop(destination.bytes().data(), source.bytes().data(), count);
    ASSERT_EQ(first_wrong(destination.bytes(), wanted, width.destination), -1)
        << set.name << " conversion " << static_cast<int>(conversion) << " count " << count;
    ASSERT_TRUE(destination.intact()) << set.name << " count " << count;
  }
}

TEST(CastLoops, TakeAnyCountAndAlignmentAndWriteNothingElse) {
  constexpr Placement kPlacements[] = {{0, 0}, {1, 0}, {0, 8}, {3, 1}, {4, 62}};
  for (const KernelSet* set : kernel_sets()) {
    for (const Conversion conversion : kConversions) {
      for (const size_t count :
           std::initializer_list<size_t>{0, 1, 15, 16, 17, 31, 33, 1000, 16385, 50001}) {
        for (const Placement& placement : kPlacements) {
          expect_placed(*set, conversion, count, placement);
        }
      }
    }
  }
}

#if defined(__x86_64__)
TEST(CastLoops, IgnoreAndKeepTheFloatingPointStateOfTheCaller) {
  constexpr unsigned kUpAndFlushing = 0x1f80 | 0x4000 | 0x8000 | 0x0040;
  constexpr size_t kCount = 100'000;
  for (const Conversion conversion : kConversions) {
    const auto all = interesting_source(conversion);
    const ConversionWidths width = widths(conversion);
    // Where the results are subnormal: floats begin there, doubles reach it later.
    const size_t first = width.source == 8 ? kCount : 0;
    const auto source = ConstMemoryView(all).subspan(first * width.source, kCount * width.source);
    const auto wanted = reference_cast(conversion, source);
    for (const KernelSet* set : kernel_sets()) {
      for (const CastLoop loop : all_loops(*set, conversion)) {
        Guarded destination(wanted.size(), 0);
        const unsigned before = _mm_getcsr();
        _mm_setcsr(kUpAndFlushing);
        loop(destination.bytes().data(), source.data(), kCount);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_EQ(after, kUpAndFlushing);
        ASSERT_EQ(first_wrong(destination.bytes(), wanted, width.destination), -1) << set->name;
      }
    }
  }
}
#endif

TEST(CastLoops, FollowTheInstructionSetOfTheCopy) {
  for (const KernelSet* set : kernel_sets()) {
    for (size_t walk = 0; walk < kNumWalks; ++walk) {
      if (set->copies[walk] == nullptr) continue;
      const std::string kernel = std::string(set->name) + "_" + kWalkNames[walk];
      const CastPair pair = casts_for(kernel, Conversion::kF64ToF16);
      EXPECT_EQ(pair.cached, loops_of(*set, Conversion::kF64ToF16).cached);
      EXPECT_EQ(pair.streamed, loops_of(*set, Conversion::kF64ToF16).streamed[walk]);
    }
  }
  const CastPair pair = casts_for("memcpy", Conversion::kF32ToF16);
  EXPECT_EQ(pair.streamed, loops_of(*kernel_sets().back(), Conversion::kF32ToF16).streamed[0]);
}

}  // namespace
}  // namespace weightcast
