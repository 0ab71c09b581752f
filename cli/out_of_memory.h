// Memory that runs out is a failure like any other: it is told to every rank before this one
// leaves. Thread-safe.
#pragma once

#include <new>

#include "weightcast/base/result.h"

namespace weightcast {

/// What `run` returns, or `kNoResource` if it ran out of memory.
template <typename Run>
auto catch_out_of_memory(const Run& run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return Error(Code::kNoResource,
                 "out of memory: raise the limit (`ulimit -v`, the cgroup), or choose a smaller "
                 "bucket");
  }
}

}  // namespace weightcast
