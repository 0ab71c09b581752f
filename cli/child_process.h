// This program again, as a child that dies with its parent.
// One thread, which outlives the child: the kernel kills it when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"

namespace weightcast {

struct ChildOptions {
  std::vector<std::string> arguments;  ///< after the program's name
  std::string input;                   ///< what it reads from standard input; at most 4 KiB
  std::filesystem::path output;        ///< file for its standard output
  std::filesystem::path log;           ///< file for its standard error
};

class ChildProcess {
 public:
  /// Errors: `kNoResource`, `kInternal`.
  static Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Its exit status, or 128 and the number of the signal that ended it. Blocks. Errors:
  /// `kDeadline`.
  Result<int> wait(Deadline deadline);

 private:
  ChildProcess(pid_t pid, Fd handle) : pid_(pid), handle_(std::move(handle)) {}
  pid_t pid_;
  Fd handle_;  ///< readable once it has ended
};

}  // namespace weightcast
