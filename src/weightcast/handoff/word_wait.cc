#include "weightcast/handoff/word_wait.h"

#include <array>
#include <atomic>

namespace weightcast {
namespace {

// Blocks once. True if the word has to be looked at again, false if the deadline passed.
Result<bool> block(const WordWait& wait, const Group& group, Deadline deadline) {
  const std::array<int, 2> fds{group.failure_fd(), wait.event.fd()};
  const auto ready = wait_readable(fds, deadline);
  if (!ready) {
    if (ready.error().code() != Code::kDeadline) return ready.error();
    return false;
  }
  if (*ready == 0) {
    return group.failure().value_or(Error(Code::kInternal, "the group failed without a cause"));
  }
  wait.event.drain();
  return true;
}

}  // namespace

Result<bool> wait_for_change(const WordWait& wait, const Group& group, Deadline deadline) {
  Result<bool> go_on = true;
  // Sequentially consistent: meets the store of the number and the load of `wake_waiter`.
  wait.awaited.number.store(wait.number, std::memory_order_seq_cst);
  while (wait.word.number.load(std::memory_order_seq_cst) == wait.old_number) {
    go_on = block(wait, group, deadline);
    if (!go_on || !*go_on) break;
  }
  wait.awaited.number.store(0, std::memory_order_relaxed);
  return go_on;
}

void wake_waiter(const NumberWord& awaited, uint64_t number, const EventFd& event) {
  if (awaited.number.load(std::memory_order_seq_cst) == number) event.signal();
}

}  // namespace weightcast
