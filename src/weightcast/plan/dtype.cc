#include "weightcast/plan/dtype.h"

#include <algorithm>
#include <array>

#include "weightcast/base/check.h"

namespace weightcast {
namespace {

struct Row {
  DType dtype;
  size_t bits;
  std::string_view name;
};

// In the order of the codes, which start at 1. Names as in safetensors 0.6, src/tensor.rs.
constexpr std::array kRows = {
    Row{DType::kBool, 8, "BOOL"},
    Row{DType::kU8, 8, "U8"},
    Row{DType::kI8, 8, "I8"},
    Row{DType::kU16, 16, "U16"},
    Row{DType::kI16, 16, "I16"},
    Row{DType::kU32, 32, "U32"},
    Row{DType::kI32, 32, "I32"},
    Row{DType::kU64, 64, "U64"},
    Row{DType::kI64, 64, "I64"},
    Row{DType::kF16, 16, "F16"},
    Row{DType::kBf16, 16, "BF16"},
    Row{DType::kF32, 32, "F32"},
    Row{DType::kF64, 64, "F64"},
    Row{DType::kC64, 64, "C64"},
    Row{DType::kC128, 128, "C128"},
    Row{DType::kF8E4M3, 8, "F8_E4M3"},
    Row{DType::kF8E5M2, 8, "F8_E5M2"},
    Row{DType::kF8E8M0, 8, "F8_E8M0"},
    Row{DType::kF8E4M3Fnuz, 8, "F8_E4M3FNUZ"},
    Row{DType::kF8E5M2Fnuz, 8, "F8_E5M2FNUZ"},
    Row{DType::kF6E2M3, 6, "F6_E2M3"},
    Row{DType::kF6E3M2, 6, "F6_E3M2"},
    Row{DType::kF4, 4, "F4"},
};

constexpr auto kDTypes = [] {
  std::array<DType, kRows.size()> all{};
  for (size_t i = 0; i < kRows.size(); ++i) all[i] = kRows[i].dtype;
  return all;
}();

constexpr bool rows_follow_codes() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i + 1) return false;
  }
  return true;
}
static_assert(rows_follow_codes());

const Row& row(DType dtype) {
  const size_t code = static_cast<size_t>(dtype);
  WEIGHTCAST_CHECK(code >= 1 && code <= kRows.size());
  return kRows[code - 1];
}

}  // namespace

std::span<const DType> dtypes() { return kDTypes; }

size_t bits(DType dtype) { return row(dtype).bits; }

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &Row::name);
  if (found == kRows.end()) return std::nullopt;
  return found->dtype;
}

std::optional<DType> dtype_from_code(uint8_t code) {
  if (code < 1 || code > kRows.size()) return std::nullopt;
  return static_cast<DType>(code);
}

bool is_castable(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBf16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

DType cast_dtype(DType from, DType target) {
  WEIGHTCAST_CHECK(is_castable(target) && target != DType::kF64);
  return is_castable(from) && bits(from) > bits(target) ? target : from;
}

}  // namespace weightcast
