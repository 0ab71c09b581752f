#include "weightcast/control/outbox.h"

#include <memory>
#include <utility>

namespace weightcast {

Result<std::unique_ptr<Outbox>> Outbox::create() {
  WEIGHTCAST_ASSIGN(EventFd wake, EventFd::create());
  return std::unique_ptr<Outbox>(new Outbox(std::move(wake)));
}

void Outbox::push(Command command) {
  {
    const MutexLock lock(mutex_);
    commands_.push_back(std::move(command));
  }
  tell();
}

void Outbox::stop() {
  stopping_.store(true, std::memory_order_release);
  tell();
}

void Outbox::tell() {
  news_.store(true, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) wake_.signal();
}

bool Outbox::fall_asleep() {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!has_news()) return true;
  wake_up(false);
  return false;
}

void Outbox::wake_up(bool signalled) {
  asleep_.store(false, std::memory_order_relaxed);
  if (signalled) wake_.drain();
}

std::vector<Command> Outbox::take() {
  // Cleared first: a command that is added after the swap sets it again.
  if (!news_.exchange(false, std::memory_order_seq_cst)) return {};
  const MutexLock lock(mutex_);
  return std::exchange(commands_, {});
}

}  // namespace weightcast
