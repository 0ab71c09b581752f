#include "ticket_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "output.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/random.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

// Far above any ticket, which holds a few keys and addresses.
constexpr size_t kMaxTicketText = 64 * 1024;
constexpr std::string_view kTicketPrefix = "wc1:";

Error file_error(int number, std::string_view what, const std::string& path) {
  const Error error = system_error(number, fmt::format("{} ticket file {}", what, path));
  // A path that leads nowhere is the user's, and not an accident of the system.
  return error.code() == Code::kInternal ? Error(Code::kBadInput, error.message()) : error;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<std::string> accept(std::string_view text, const std::string& path) {
  const std::string_view ticket = trim(text);
  if (ticket.starts_with(kTicketPrefix)) return std::string(ticket);
  return Error(Code::kRefused, fmt::format("{}: this is no ticket: it does not begin with `{}`",
                                           path == "-" ? "standard input" : path, kTicketPrefix));
}

// What the file holds, or nothing while it does not exist.
Result<std::string> read_file(const std::string& path) {
  // Non-blocking, for a pipe under this name whose other end has not written yet.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT) return std::string();
    return file_error(errno, "open", path);
  }
  std::string text(kMaxTicketText, '\0');
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0 && errno != EAGAIN) return file_error(errno, "read", path);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

}  // namespace

Result<std::unique_ptr<PublishedTicket>> PublishedTicket::publish(const std::string& path,
                                                                  std::string_view ticket) {
  std::unique_ptr<PublishedTicket> published(new PublishedTicket);
  if (path.empty()) {
    write_err(ticket);
  } else if (path == "-") {
    write_out(fmt::format("{}\n", ticket));
    WEIGHTCAST_TRY(finish_output());
  } else {
    published->path_ = path;
    if (Status written = published->write(ticket); !written) {
      published->path_.clear();
      return written.error();
    }
  }
  return published;
}

Status PublishedTicket::write(std::string_view ticket) {
  const std::string temporary = fmt::format("{}.{}", path_, random_hex(8));
  const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return file_error(errno, "create", path_);
  const std::string line = fmt::format("{}\n", ticket);
  struct stat status {};
  errno = ENOSPC;  // what a short write means
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fstat(fd.get(), &status) != 0 || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    return file_error(number, "write", path_);
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return {};
}

PublishedTicket::~PublishedTicket() {
  struct stat status {};
  if (path_.empty() || ::lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) ::unlink(path_.c_str());
}

Result<std::string> TicketSource::first(Duration timeout) {
  WEIGHTCAST_ASSIGN(const std::string text,
                    path_ == "-" ? read_standard_input(timeout) : wait_for_file(timeout));
  WEIGHTCAST_ASSIGN(last_, accept(text, path_));
  return last_;
}

std::optional<std::string> TicketSource::reread() {
  if (path_ == "-") return std::nullopt;
  const Result<std::string> text = read_file(path_);
  if (!text) return std::nullopt;
  const Result<std::string> ticket = accept(*text, path_);
  if (!ticket || *ticket == last_) return std::nullopt;
  last_ = *ticket;
  return last_;
}

Result<std::string> TicketSource::wait_for_file(Duration timeout) {
  // Looked for again and again: a watch needs a directory that exists, and sees nothing of what
  // happens on another host that shares it.
  constexpr int kLookEveryMs = 20;
  const Deadline deadline = Deadline::after(timeout);
  while (true) {
    WEIGHTCAST_ASSIGN(std::string text, read_file(path_));
    if (!trim(text).empty()) return text;
    if (deadline.expired()) {
      return Error(Code::kDeadline, fmt::format("ticket file {} did not appear within {}", path_,
                                                format_duration(timeout)));
    }
    ::poll(nullptr, 0, std::min(kLookEveryMs, deadline.poll_timeout_ms()));
  }
}

Result<std::string> TicketSource::read_standard_input(Duration timeout) const {
  const Deadline deadline = Deadline::after(timeout);
  std::string text;
  while (text.size() < kMaxTicketText && text.find('\n') == std::string::npos) {
    const std::array<int, 1> fds = {STDIN_FILENO};
    if (const auto ready = wait_readable(fds, deadline); !ready) {
      if (ready.error().code() != Code::kDeadline) return ready.error();
      return Error(Code::kDeadline, fmt::format("no ticket came on standard input within {}",
                                                format_duration(timeout)));
    }
    std::array<char, 4096> chunk{};
    const ssize_t size = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_error(errno, "read", "standard input");
    if (size == 0) break;
    text.append(chunk.data(), static_cast<size_t>(size));
  }
  return text;
}

}  // namespace weightcast
