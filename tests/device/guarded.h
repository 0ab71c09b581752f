// A destination between guard bytes, at any alignment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace weightcast::testing {

/// `size` bytes that start `misalignment` bytes after a 64-byte line, filled with the guard.
class Guarded {
 public:
  Guarded(size_t size, size_t misalignment) : memory_(size + 2 * kMargin + 64, kGuard) {
    const size_t skew = reinterpret_cast<uintptr_t>(memory_.data() + kMargin) % 64;
    bytes_ = std::span(memory_).subspan(kMargin + (64 - skew) % 64 + misalignment, size);
  }

  std::span<std::byte> bytes() const { return bytes_; }
  /// Whether nothing around the bytes was written.
  bool intact() const {
    const auto guards = [](const std::byte* from, const std::byte* to) {
      return std::all_of(from, to, [](std::byte byte) { return byte == kGuard; });
    };
    return guards(memory_.data(), bytes_.data()) &&
           guards(bytes_.data() + bytes_.size(), memory_.data() + memory_.size());
  }

 private:
  static constexpr size_t kMargin = 128;
  static constexpr std::byte kGuard{0xa5};
  std::vector<std::byte> memory_;
  std::span<std::byte> bytes_;
};

}  // namespace weightcast::testing
