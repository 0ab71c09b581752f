// Processes for tests of memory that is shared and of ranks that die.
// One thread; start children before any other thread exists.
#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

#include "weightcast/base/fd.h"

namespace weightcast::testing {

/// A forked process that runs a function and reports what it returns. Killed when the object or the
/// test's process dies.
class Child {
 public:
  /// `run` returns what went wrong, or nothing. It must not use assertions of the test framework.
  explicit Child(const std::function<std::string()>& run);
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits for the end and returns the report; a child that died or hung has one too.
  std::string report();

 private:
  pid_t pid_ = -1;
  Fd pipe_;
};

}  // namespace weightcast::testing
