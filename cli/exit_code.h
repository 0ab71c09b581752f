// What the program's exit status says (docs/operations.md).
// Pure functions.
#pragma once

#include "weightcast/base/result.h"

namespace weightcast {

inline constexpr int kExitDone = 0;
inline constexpr int kExitInternal = 1;  ///< a bug, or a system call that failed unexpectedly
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitPeerLost = 4;  ///< a peer was lost, or a deadline passed
inline constexpr int kExitCorruption = 5;
inline constexpr int kExitRefused = 6;
inline constexpr int kExitNoResource = 7;

/// The exit status of a command that failed with `code`.
int exit_code(Code code);

}  // namespace weightcast
