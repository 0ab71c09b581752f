// Narrowing of one floating-point number, in integers alone: the environment of the caller's
// thread (rounding mode, flushing of subnormals) has no say.
// Everything is local to the file that includes it: each is compiled for an instruction set of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weightcast {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
};
constexpr FloatFormat kF16Format{5, 10};
constexpr FloatFormat kBf16Format{8, 7};
constexpr FloatFormat kF32Format{8, 23};
constexpr FloatFormat kF64Format{11, 52};

constexpr uint64_t low_bits(int count) { return (uint64_t{1} << count) - 1; }

// IEEE 754, 4.3.1: round to nearest, ties to even. A NaN keeps its sign and the upper bits of its
// payload and becomes quiet, as the conversion instructions of x86 and Arm have it.
template <FloatFormat kFrom, FloatFormat kTo>
constexpr uint64_t narrow(uint64_t bits) {
  constexpr int kDropped = kFrom.mantissa_bits - kTo.mantissa_bits;
  constexpr int kBiasDifference = (1 << (kFrom.exponent_bits - 1)) - (1 << (kTo.exponent_bits - 1));
  constexpr uint64_t kInfinity = low_bits(kTo.exponent_bits) << kTo.mantissa_bits;
  const uint64_t mantissa = bits & low_bits(kFrom.mantissa_bits);
  const uint64_t field = (bits >> kFrom.mantissa_bits) & low_bits(kFrom.exponent_bits);
  const uint64_t sign = bits >> (kFrom.exponent_bits + kFrom.mantissa_bits)
                                    << (kTo.exponent_bits + kTo.mantissa_bits);
  if (field == low_bits(kFrom.exponent_bits)) {
    const uint64_t quiet = uint64_t{1} << (kTo.mantissa_bits - 1);
    return sign | kInfinity | (mantissa == 0 ? 0 : quiet | mantissa >> kDropped);
  }
  const bool subnormal = field == 0;
  const uint64_t significand = subnormal ? mantissa : mantissa + low_bits(kFrom.mantissa_bits) + 1;
  int exponent = static_cast<int>(subnormal ? 1 : field) - kBiasDifference;
  int dropped = kDropped;
  if (exponent < 1) {  // subnormal in the narrow format, or less than half of its smallest number
    dropped += 1 - exponent;
    if (dropped > kFrom.mantissa_bits + 2) dropped = kFrom.mantissa_bits + 2;
    exponent = 1;
  }
  const uint64_t rest = significand & low_bits(dropped);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  uint64_t kept = significand >> dropped;
  if (rest > half || (rest == half && kept % 2 == 1)) ++kept;
  // The leading bit of `kept`, and a carry out of it, add themselves to the exponent.
  const uint64_t result = (static_cast<uint64_t>(exponent - 1) << kTo.mantissa_bits) + kept;
  return sign | (result < kInfinity ? result : kInfinity);
}

template <typename From, typename To, FloatFormat kFrom, FloatFormat kTo>
void narrow_all(std::byte* destination, const std::byte* source, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, source + i * sizeof from, sizeof from);
    const To to = static_cast<To>(narrow<kFrom, kTo>(from));
    std::memcpy(destination + i * sizeof to, &to, sizeof to);
  }
}

constexpr auto narrow_f32_to_bf16 = narrow_all<uint32_t, uint16_t, kF32Format, kBf16Format>;
constexpr auto narrow_f32_to_f16 = narrow_all<uint32_t, uint16_t, kF32Format, kF16Format>;
constexpr auto narrow_f64_to_f32 = narrow_all<uint64_t, uint32_t, kF64Format, kF32Format>;
constexpr auto narrow_f64_to_bf16 = narrow_all<uint64_t, uint16_t, kF64Format, kBf16Format>;
constexpr auto narrow_f64_to_f16 = narrow_all<uint64_t, uint16_t, kF64Format, kF16Format>;

}  // namespace
}  // namespace weightcast
