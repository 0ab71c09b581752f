// Where bytes lie. Views borrow: whoever passes one keeps the memory until the work is done.
// Values: copyable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weightcast {

enum class DeviceKind : uint8_t { kHost, kAscend, kCuda };

struct DeviceId {
  DeviceKind kind = DeviceKind::kHost;
  int index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// Bytes on a device. Only the device that owns them may dereference `data()`.
using MemoryView = std::span<std::byte>;
using ConstMemoryView = std::span<const std::byte>;

}  // namespace weightcast
