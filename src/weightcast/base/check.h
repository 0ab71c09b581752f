// Broken invariants of our own code end the process; bytes from outside never come here.
#pragma once

namespace weightcast {

/// Prints `condition`, `file` and `line` to standard error and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace weightcast

#define WEIGHTCAST_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::weightcast::check_failed(#condition, __FILE__, __LINE__))
