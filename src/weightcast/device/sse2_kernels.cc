#include "weightcast/device/kernel_set.h"
#include "weightcast/device/x86_stream.h"

namespace weightcast {
namespace {

struct CopyStep {
  struct Line {
    __m128i quarters[4];
  };
  static constexpr size_t kRatio = 1;

  static Line make(const std::byte* source) {
    const auto* from = reinterpret_cast<const __m128i*>(source);
    return {{_mm_loadu_si128(from), _mm_loadu_si128(from + 1), _mm_loadu_si128(from + 2),
             _mm_loadu_si128(from + 3)}};
  }
  static void stream(std::byte* destination, const Line& line) {
    auto* to = reinterpret_cast<__m128i*>(destination);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(to + i, line.quarters[i]);
  }
};

}  // namespace

const KernelSet& sse2_kernels() {
  // SSE2 has no conversion to half precision and too few lanes to gain much: plain C++ serves.
  static const KernelSet set = kernel_set<CopyStep>("sse2", portable_kernels().casts);
  return set;
}

void copy_rep_movsb(std::byte* destination, const std::byte* source, size_t size) {
  asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(size) : : "memory");
}

}  // namespace weightcast
