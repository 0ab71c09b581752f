// Starting threads where there may be too little memory, or too many threads already.
// Thread-safe.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "weightcast/base/result.h"

namespace weightcast {

/// The error for a thread, or what starts one, that could not be made.
inline Error thread_error(const std::system_error& error) {
  return Error(Code::kNoResource,
               std::string("start a thread: ") + error.what() +
                   ": raise `ulimit -u` or the memory limit (`ulimit -v`, the cgroup)");
}

/// Runs `run` on a new thread. Errors: `kNoResource`.
template <typename Run>
Result<std::jthread> start_thread(Run run) {
  try {
    return std::jthread(std::move(run));
  } catch (const std::system_error& error) {
    return thread_error(error);
  }
}

}  // namespace weightcast
