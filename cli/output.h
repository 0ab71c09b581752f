// Text to standard output (reports) and standard error (everything else), and tables in it.
// One thread, but for `write_err`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weightcast/base/result.h"

namespace weightcast {

/// Failures are remembered for `finish_output`.
void write_out(std::string_view text);
/// A line for people, in one system call. Thread-safe.
void write_err(std::string_view line);
/// Flushes standard output. Errors: that any of it could not be written. A reader that has closed
/// its end (`weightcast plan … | head`) is no error.
Status finish_output();

/// Whether standard error is a terminal that can redraw a line.
bool stderr_is_terminal();

enum class Style { kBold, kGreen, kRed };
/// `text` in a style where standard output is a terminal and NO_COLOR is unset or empty.
std::string styled_out(Style style, std::string_view text);
/// The same for standard error.
std::string styled_err(Style style, std::string_view text);

/// Lines of cells, the first the header, as aligned columns two spaces apart, each line ended.
/// `alignment` has one of `<` and `>` a column.
std::string format_table(std::string_view alignment,
                         const std::vector<std::vector<std::string>>& lines);

}  // namespace weightcast
