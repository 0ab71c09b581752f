#include "reference_cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace weightcast::testing {
namespace {

struct Target {
  int mantissa_bits;
  int max_exponent;
  int width;
};

Target target_of(Conversion conversion) {
  using enum Conversion;
  if (conversion == kF64ToF32) return {23, 127, 4};
  const bool bf16 = conversion == kF32ToBf16 || conversion == kF64ToBf16;
  return bf16 ? Target{7, 127, 2} : Target{10, 15, 2};
}

bool from_f64(Conversion conversion) { return widths(conversion).source == 8; }

// The upper `mantissa_bits` of the payload, made quiet.
uint64_t nan_payload(double value, int mantissa_bits) {
  const uint64_t payload = std::bit_cast<uint64_t>(value) & 0xfffffffffffff;
  return payload >> (52 - mantissa_bits) | uint64_t{1} << (mantissa_bits - 1);
}

uint64_t narrow_one(double value, Target target) {
  const int exponent_bits = target.width * 8 - 1 - target.mantissa_bits;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (target.width * 8 - 1) : 0;
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << target.mantissa_bits;
  if (std::isnan(value)) return sign | infinity | nan_payload(value, target.mantissa_bits);
  if (std::isinf(value)) return sign | infinity;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int min_exponent = 1 - target.max_exponent;
  const int exponent = std::max(std::ilogb(magnitude), min_exponent);
  // A double holds both scalings without loss, and `nearbyint` rounds ties to even.
  const double units = std::nearbyint(std::ldexp(magnitude, target.mantissa_bits - exponent));
  const double rounded = std::ldexp(units, exponent - target.mantissa_bits);
  if (rounded >= std::ldexp(1.0, target.max_exponent + 1)) return sign | infinity;
  const double smallest_normal = std::ldexp(1.0, min_exponent);
  if (rounded < smallest_normal) {
    return sign | static_cast<uint64_t>(std::ldexp(rounded, target.mantissa_bits - min_exponent));
  }
  const int rounded_exponent = std::ilogb(rounded);
  const double fraction = std::ldexp(rounded, -rounded_exponent) - 1;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, target.mantissa_bits));
  const auto biased = static_cast<uint64_t>(rounded_exponent + target.max_exponent);
  return sign | biased << target.mantissa_bits | mantissa;
}

// A signalling NaN would become quiet on its way through the floating-point unit of some machines,
// which the result hides: every NaN comes out quiet.
double widen(uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); }

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<uint32_t> interesting_floats() {
  constexpr uint32_t kLower[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x1fff,
                                 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::vector<uint32_t> values;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower : kLower) values.push_back(upper << 16 | lower);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) values.push_back(static_cast<uint32_t>(random()));
  return values;
}

// The mantissas next to a rounding place at bit `dropped` of a double.
void push_around_tie(uint64_t upper, int dropped, std::vector<uint64_t>& values) {
  const uint64_t half = uint64_t{1} << (dropped - 1);
  const uint64_t kept = upper & ~(2 * half - 1);
  for (const uint64_t rest : {uint64_t{0}, uint64_t{1}, half - 1, half, half + 1, 2 * half - 1}) {
    values.push_back(kept | rest);
    values.push_back((kept ^ (2 * half)) | rest);  // the other parity
  }
}

std::vector<uint64_t> interesting_doubles() {
  std::mt19937_64 random(2);
  std::vector<uint64_t> values;
  for (uint64_t exponent = 0; exponent < 2048; ++exponent) {
    // The narrow formats begin and end here; elsewhere everything is zero or infinity.
    const bool near = exponent > 1023 - 160 && exponent < 1023 + 132;
    for (int dropped = 28; dropped <= 52; dropped += near ? 1 : 12) {
      for (const uint64_t mantissa : {uint64_t{0}, ~uint64_t{0}, static_cast<uint64_t>(random())}) {
        const uint64_t sign = random() << 63;
        const uint64_t upper = sign | exponent << 52 | (mantissa & 0xfffffffffffff);
        push_around_tie(upper, dropped == 52 ? 51 : dropped, values);
      }
    }
  }
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random());
    values.push_back(std::bit_cast<uint64_t>(widen(static_cast<uint32_t>(random()))));
  }
  return values;
}

}  // namespace

std::vector<std::byte> interesting_source(Conversion conversion) {
  return from_f64(conversion) ? bytes_of(interesting_doubles()) : bytes_of(interesting_floats());
}

std::vector<std::byte> reference_cast(Conversion conversion, ConstMemoryView source) {
  const Target target = target_of(conversion);
  const size_t source_width = widths(conversion).source;
  const auto width = static_cast<size_t>(target.width);
  std::vector<std::byte> result(source.size() / source_width * width);
  for (size_t i = 0; i < source.size() / source_width; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, source.data() + i * source_width, source_width);
    const double value =
        from_f64(conversion) ? std::bit_cast<double>(bits) : widen(static_cast<uint32_t>(bits));
    const uint64_t narrow = narrow_one(value, target);
    std::memcpy(result.data() + i * width, &narrow, width);
  }
  return result;
}

}  // namespace weightcast::testing
