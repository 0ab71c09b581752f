// FlatBuffers of strangers, verified before use. For the .cc files that see the generated schema.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/control/wire_generated.h"

namespace weightcast {

/// Bytes at an address that FlatBuffers may read 64-bit numbers from: the given ones where they lie
/// well, else a copy. The given ones outlive it.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const std::byte> bytes) : bytes_(bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) == 0) return;
    copy_.resize((bytes.size() + 7) / 8);
    std::memcpy(copy_.data(), bytes.data(), bytes.size());
    bytes_ = std::as_bytes(std::span(copy_)).first(bytes.size());
  }
  ~AlignedBytes() = default;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  std::vector<uint64_t> copy_;
};

/// The table `T` in `bytes`, or null if they do not match its schema.
template <typename T>
const T* verified(std::span<const std::byte> bytes, const char* identifier) {
  // Every table has at least an offset to its vtable, so more tables than this are one used twice.
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 4 + 1);
  constexpr flatbuffers::uoffset_t kMaxDepth = 8;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  // The verifier reads the identifier before it looks at the size.
  if (bytes.size() < sizeof(flatbuffers::uoffset_t) + flatbuffers::kFileIdentifierLength) {
    return nullptr;
  }
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, max_tables);
  if (!verifier.VerifyBuffer<T>(identifier)) return nullptr;
  return flatbuffers::GetRoot<T>(data);
}

/// Checks the part that all protocol versions share. Errors: `kCorruption`; `kRefused` naming both
/// versions when `bytes` are of another one.
Status verify_envelope(std::span<const std::byte> bytes, const char* identifier,
                       std::string_view what);

}  // namespace weightcast
