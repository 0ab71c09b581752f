#include "weightcast/device/kernel_set.h"
#include "weightcast/device/narrow.h"
#include "weightcast/device/x86_stream.h"

namespace weightcast {
namespace {

using Line = __m512i;

struct LineStores {
  static void stream(std::byte* destination, Line line) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(destination), line);
  }
  static void store(std::byte* destination, Line line) { _mm512_storeu_si512(destination, line); }
};

__m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

__m256i round_to_bf16(__m512 floats) {
  const __m512i bits = _mm512_castps_si512(floats);
  const __m512i upper = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(floats, floats, _CMP_UNORD_Q);
  // The instruction for this in AVX512_BF16 takes subnormals for zero.
  return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40)));
}

__m256i round_to_f16(__m512 floats) {
  return _mm512_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// Eight doubles cut off to floats, and in `inexact` which of them were not representable.
__m256 cut_off(__m512d doubles, __mmask8* inexact) {
  const __m256 cut = _mm512_cvtpd_ps(doubles);
  *inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), doubles, _CMP_NEQ_UQ);
  return cut;
}

// Rounding twice is right only if the first step goes to odd: cut off, and the last bit set if
// anything was (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
// Requires: the unit rounds to zero.
__m512 odd_floats(const std::byte* source) {
  __mmask8 low_inexact = 0;
  __mmask8 high_inexact = 0;
  const __m256 low = cut_off(_mm512_loadu_pd(source), &low_inexact);
  const __m256 high = cut_off(_mm512_loadu_pd(source + 64), &high_inexact);
  const auto inexact = static_cast<__mmask16>(low_inexact | high_inexact << 8);
  const __m512i cut = join(_mm256_castps_si256(low), _mm256_castps_si256(high));
  return _mm512_castsi512_ps(_mm512_mask_or_epi32(cut, inexact, cut, _mm512_set1_epi32(1)));
}

struct CopyStep : LineStores {
  static constexpr size_t kRatio = 1;
  static Line make(const std::byte* source) { return _mm512_loadu_si512(source); }
};

template <__m256i (*kRound)(__m512), CastLoop kNarrow>
struct FromF32 : LineStores {
  static constexpr size_t kRatio = 2;
  static constexpr size_t kWidth = 2;
  static constexpr unsigned kControl = kRoundToNearest;
  static constexpr CastLoop narrow = kNarrow;
  static Line make(const std::byte* source) {
    return join(kRound(_mm512_loadu_ps(source)), kRound(_mm512_loadu_ps(source + 64)));
  }
};

template <__m256i (*kRound)(__m512), CastLoop kNarrow>
struct FromF64 : LineStores {
  static constexpr size_t kRatio = 4;
  static constexpr size_t kWidth = 2;
  static constexpr unsigned kControl = kRoundToZero;
  static constexpr CastLoop narrow = kNarrow;
  static Line make(const std::byte* source) {
    return join(kRound(odd_floats(source)), kRound(odd_floats(source + 128)));
  }
};

struct F64ToF32 : LineStores {
  static constexpr size_t kRatio = 2;
  static constexpr size_t kWidth = 4;
  static constexpr unsigned kControl = kRoundToNearest;
  static constexpr CastLoop narrow = narrow_f64_to_f32;
  static Line make(const std::byte* source) {
    return join(_mm256_castps_si256(_mm512_cvtpd_ps(_mm512_loadu_pd(source))),
                _mm256_castps_si256(_mm512_cvtpd_ps(_mm512_loadu_pd(source + 64))));
  }
};

constexpr CastLoops kCasts[kNumConversions] = {
    cast_loops<FromF32<round_to_bf16, narrow_f32_to_bf16>>(),
    cast_loops<FromF32<round_to_f16, narrow_f32_to_f16>>(),
    cast_loops<F64ToF32>(),
    cast_loops<FromF64<round_to_bf16, narrow_f64_to_bf16>>(),
    cast_loops<FromF64<round_to_f16, narrow_f64_to_f16>>(),
};
constexpr KernelSet kSet = kernel_set<CopyStep>("avx512", kCasts);

}  // namespace

const KernelSet& avx512_kernels() { return kSet; }

}  // namespace weightcast
