// Element types: everything that safetensors names, and packed 4-bit bytes. Nothing here computes.
// Values and pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weightcast {

/// The codes are part of the wire protocol and of the version digest (docs/wire.md): append only.
enum class DType : uint8_t {
  kBool = 1,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kC64,   ///< two F32
  kC128,  ///< two F64; not in safetensors' own list
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF6E2M3,
  kF6E3M2,
  kF4,  ///< two elements a byte
};

/// Every dtype, in the order of the codes.
std::span<const DType> dtypes();
/// Bits an element has: 4, 6, 8, 16, 32, 64 or 128.
size_t bits(DType dtype);
/// safetensors' name, for example `BF16` or `F8_E4M3`.
std::string_view name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
/// For numbers that came from outside.
std::optional<DType> dtype_from_code(uint8_t code);

/// F16, BF16, F32 and F64: the types that a cast may touch.
bool is_castable(DType dtype);
/// The dtype that `from` travels as when floating tensors are cast to `target`: `target` if `from`
/// is castable and wider, else `from`. Requires: `target` is F32, F16 or BF16.
DType cast_dtype(DType from, DType target);

}  // namespace weightcast
