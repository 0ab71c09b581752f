// The log: one line an event, to standard error. Lower case, `name value`, no full stop.
// Thread-safe. The level comes from WEIGHTCAST_LOG (error, warn, info, debug, trace), else `warn`.
#pragma once

#include <string>
#include <string_view>

namespace weightcast {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

/// Whether a line of `level` would be printed. For callers whose text is costly to build.
bool log_enabled(LogLevel level);
void log_message(LogLevel level, std::string_view text);
void set_log_level(LogLevel level);

/// Put before every line of this process from now on, for example `rank 2 epoch 1`.
void set_log_prefix(std::string prefix);

}  // namespace weightcast
