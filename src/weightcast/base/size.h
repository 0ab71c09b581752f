// Sizes and durations as people write them: `64MiB`, `3.5 GB`, `60s`.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"

namespace weightcast {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

/// Bytes from `64MiB`, `4K`, `1.5GB` or `1048576`. KiB, MiB, GiB, TiB are binary; KB, MB, GB, TB
/// decimal; a single letter is binary. Case does not matter. Errors: `kInvalidArgument`.
Result<uint64_t> parse_size(std::string_view text);
/// `64.0 MiB`, `512 B`.
std::string format_size(uint64_t size);

/// A duration from `60s`, `500ms`, `2m`, `1h` or a plain number of seconds. Errors:
/// `kInvalidArgument`; zero and negative durations are refused.
Result<Duration> parse_duration(std::string_view text);
/// `60 s`, `1.5 s`, `500 ms`.
std::string format_duration(Clock::duration duration);

}  // namespace weightcast
