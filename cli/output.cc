#include "output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace weightcast {
namespace {

bool wants_colour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !refused && !dumb && ::isatty(fd) == 1;
}

std::string styled(int fd, Style style, std::string_view text) {
  if (!wants_colour(fd)) return std::string(text);
  const int code = style == Style::kBold ? 1 : style == Style::kGreen ? 32 : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

// An earlier write may have failed, and its errno is long gone.
bool reader_is_gone() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// Code points, which is what a column of a terminal holds of most scripts.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void write_out(std::string_view text) {
  // A failure sets the stream's error flag, which finish_output looks at.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
}

void write_err(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  // There is nobody to tell when standard error itself is gone.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

Status finish_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int number = errno;
  if (flushed && std::ferror(stdout) == 0) return {};
  if (number == EPIPE || reader_is_gone()) return {};
  return system_error(number == 0 ? EIO : number, "write to standard output");
}

bool stderr_is_terminal() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

std::string styled_out(Style style, std::string_view text) {
  return styled(STDOUT_FILENO, style, text);
}

std::string styled_err(Style style, std::string_view text) {
  return styled(STDERR_FILENO, style, text);
}

std::string format_table(std::string_view alignment,
                         const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(alignment.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - width(line[i]), ' ');
      if (i > 0) row += "  ";
      row += alignment[i] == '>' ? padding + line[i] : line[i] + padding;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

}  // namespace weightcast
