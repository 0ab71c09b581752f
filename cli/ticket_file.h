// The ticket on its way from the sender to the receivers: a file, or a standard stream.
// One thread, but for `TicketSource::reread`, which the session calls on a thread of its choice
// after `first` has returned.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"

namespace weightcast {

/// A ticket that was given out. A file is removed on destruction if it is still this one.
class PublishedTicket {
 public:
  /// `path` a file: written aside with mode 0600 and renamed into place, so that nobody reads half
  /// a ticket. `-`: a line of standard output, flushed. Empty: a line of standard error. Errors:
  /// `kBadInput` when the file can not be created; `kNoResource`.
  static Result<std::unique_ptr<PublishedTicket>> publish(const std::string& path,
                                                          std::string_view ticket);
  ~PublishedTicket();
  PublishedTicket(const PublishedTicket&) = delete;
  PublishedTicket& operator=(const PublishedTicket&) = delete;

 private:
  PublishedTicket() = default;
  Status write(std::string_view ticket);

  std::string path_;  ///< empty when there is no file to remove
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Where a receiver gets its ticket from.
class TicketSource {
 public:
  /// `-`: standard input.
  explicit TicketSource(std::string path) : path_(std::move(path)) {}

  /// The ticket, as soon as there is one. Errors: `kDeadline` when none came within `timeout`;
  /// `kRefused` for text that is no ticket; `kBadInput` when the file can not be read.
  Result<std::string> first(Duration timeout);
  /// The ticket, if the file now holds another one than was returned last.
  std::optional<std::string> reread();

 private:
  Result<std::string> wait_for_file(Duration timeout);
  [[nodiscard]] Result<std::string> read_standard_input(Duration timeout) const;

  std::string path_;
  std::string last_;
};

}  // namespace weightcast
