// Waits until a word that another process writes changes.
// One thread.
#pragma once

#include <cstdint>

#include "weightcast/base/deadline.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"
#include "weightcast/control/group.h"
#include "weightcast/handoff/segment.h"

namespace weightcast {

/// A wait for `word` to become `number`, by the protocol of segment.h.
struct WordWait {
  const NumberWord& word;
  uint64_t old_number = 0;  ///< any other value ends the wait
  uint64_t number = 0;
  NumberWord& awaited;   ///< the waiting side's own
  const EventFd& event;  ///< signalled by the writer of `word`
};

/// Blocks until the word has changed, or returns false when `deadline` passed first. Errors: the
/// failure of the group.
Result<bool> wait_for_change(const WordWait& wait, const Group& group, Deadline deadline);

/// Wakes the side that owns `awaited` if it is blocked on just `number`. Called after `number` was
/// stored sequentially consistent.
void wake_waiter(const NumberWord& awaited, uint64_t number, const EventFd& event);

}  // namespace weightcast
