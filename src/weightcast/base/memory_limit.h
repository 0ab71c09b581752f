// How much memory the limits of this process leave: control groups and address space.
// Functions that read the system's files: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weightcast/base/result.h"

namespace weightcast {

/// What one limit leaves.
struct MemoryLimit {
  std::string name;   ///< as people raise it: `memory.max of the cgroup`
  uint64_t left = 0;  ///< bytes; the page cache of files counts as free
  friend bool operator==(const MemoryLimit&, const MemoryLimit&) = default;
};

/// The tightest limit of this process's cgroup (version 1 or 2) and its ancestors, or nothing where
/// there is none. `root` stands before /proc and /sys; tests set it.
std::optional<MemoryLimit> cgroup_memory_limit(const std::string& root = "");
/// What `ulimit -v` leaves, or nothing where it is unlimited.
std::optional<MemoryLimit> address_space_limit();

/// Errors: `kNoResource`, naming the limit to raise, when `size` bytes of shared memory are more
/// than is left.
Status check_memory_left(uint64_t size, const std::string& root = "");

}  // namespace weightcast
