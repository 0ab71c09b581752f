// Waiting as long as anything moves: a deadline counts only when the other ranks stand still too.
// One thread, the caller's.
#pragma once

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/control/group.h"

namespace weightcast {

/// Calls `what(deadline)` until it succeeds or fails for another reason than its deadline, or until
/// no other rank has made progress for `patience`.
template <typename What>
auto wait_while_moving(const Group& group, Duration patience, const What& what)
    -> decltype(what(Deadline::after(patience))) {
  while (true) {
    auto result = what(Deadline::after(patience));
    if (result || result.error().code() != Code::kDeadline) return result;
    if (Clock::now() - group.last_progress() >= patience) return result;
  }
}

}  // namespace weightcast
