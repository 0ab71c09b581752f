#include "weightcast/device/kernel_set.h"
#include "weightcast/device/narrow.h"
#include "weightcast/device/x86_stream.h"

namespace weightcast {
namespace {

struct Line {
  __m256i low;
  __m256i high;
};

struct LineStores {
  static void stream(std::byte* destination, const Line& line) {
    auto* to = reinterpret_cast<__m256i*>(destination);
    _mm256_stream_si256(to, line.low);
    _mm256_stream_si256(to + 1, line.high);
  }
  static void store(std::byte* destination, const Line& line) {
    auto* to = reinterpret_cast<__m256i*>(destination);
    _mm256_storeu_si256(to, line.low);
    _mm256_storeu_si256(to + 1, line.high);
  }
};

__m256 load_floats(const std::byte* source) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(source));
}
__m256d load_doubles(const std::byte* source) {
  return _mm256_loadu_pd(reinterpret_cast<const double*>(source));
}

// Eight bf16, each in the lower half of a lane.
__m256i round_to_bf16(__m256 floats) {
  const __m256i bits = _mm256_castps_si256(floats);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(floats, floats, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}

__m256i pack_bf16(__m256 first, __m256 second) {
  const __m256i packed = _mm256_packus_epi32(round_to_bf16(first), round_to_bf16(second));
  return _mm256_permute4x64_epi64(packed, 0xd8);  // packing works in each half apart
}

__m256i pack_f16(__m256 first, __m256 second) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return _mm256_set_m128i(_mm256_cvtps_ph(second, kNearest), _mm256_cvtps_ph(first, kNearest));
}

// Rounding twice is right only if the first step goes to odd: cut off, and the last bit set if
// anything was (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
// Requires: the unit rounds to zero.
__m128 round_to_odd(__m256d doubles) {
  const __m128 cut = _mm256_cvtpd_ps(doubles);
  const __m256d inexact = _mm256_cmp_pd(_mm256_cvtps_pd(cut), doubles, _CMP_NEQ_UQ);
  const __m128 low = _mm_castpd_ps(_mm256_castpd256_pd128(inexact));
  const __m128 high = _mm_castpd_ps(_mm256_extractf128_pd(inexact, 1));
  const __m128i mask = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));
  const __m128i last_bit = _mm_and_si128(mask, _mm_set1_epi32(1));
  return _mm_castsi128_ps(_mm_or_si128(_mm_castps_si128(cut), last_bit));
}

__m256 odd_floats(const std::byte* source) {
  return _mm256_set_m128(round_to_odd(load_doubles(source + 32)),
                         round_to_odd(load_doubles(source)));
}

struct CopyStep : LineStores {
  static constexpr size_t kRatio = 1;
  static Line make(const std::byte* source) {
    const auto* from = reinterpret_cast<const __m256i*>(source);
    return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
  }
};

template <__m256i (*kPack)(__m256, __m256), CastLoop kNarrow>
struct FromF32 : LineStores {
  static constexpr size_t kRatio = 2;
  static constexpr size_t kWidth = 2;
  static constexpr unsigned kControl = kRoundToNearest;
  static constexpr CastLoop narrow = kNarrow;
  static Line make(const std::byte* source) {
    return {kPack(load_floats(source), load_floats(source + 32)),
            kPack(load_floats(source + 64), load_floats(source + 96))};
  }
};

template <__m256i (*kPack)(__m256, __m256), CastLoop kNarrow>
struct FromF64 : LineStores {
  static constexpr size_t kRatio = 4;
  static constexpr size_t kWidth = 2;
  static constexpr unsigned kControl = kRoundToZero;
  static constexpr CastLoop narrow = kNarrow;
  static Line make(const std::byte* source) {
    return {kPack(odd_floats(source), odd_floats(source + 64)),
            kPack(odd_floats(source + 128), odd_floats(source + 192))};
  }
};

struct F64ToF32 : LineStores {
  static constexpr size_t kRatio = 2;
  static constexpr size_t kWidth = 4;
  static constexpr unsigned kControl = kRoundToNearest;
  static constexpr CastLoop narrow = narrow_f64_to_f32;
  static __m256i pack(const std::byte* source) {
    const __m128 low = _mm256_cvtpd_ps(load_doubles(source));
    const __m128 high = _mm256_cvtpd_ps(load_doubles(source + 32));
    return _mm256_castps_si256(_mm256_set_m128(high, low));
  }
  static Line make(const std::byte* source) { return {pack(source), pack(source + 64)}; }
};

constexpr CastLoops kCasts[kNumConversions] = {
    cast_loops<FromF32<pack_bf16, narrow_f32_to_bf16>>(),
    cast_loops<FromF32<pack_f16, narrow_f32_to_f16>>(),
    cast_loops<F64ToF32>(),
    cast_loops<FromF64<pack_bf16, narrow_f64_to_bf16>>(),
    cast_loops<FromF64<pack_f16, narrow_f64_to_f16>>(),
};
constexpr KernelSet kSet = kernel_set<CopyStep>("avx2", kCasts);

}  // namespace

const KernelSet& avx2_kernels() { return kSet; }

}  // namespace weightcast
