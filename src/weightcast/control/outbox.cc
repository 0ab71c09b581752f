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
    has_commands_.store(true, std::memory_order_release);
  }
  wake_.signal();
}

void Outbox::stop() {
  stopping_.store(true, std::memory_order_release);
  wake_.signal();
}

std::vector<Command> Outbox::take() {
  if (!has_commands_.load(std::memory_order_acquire)) return {};
  // Drained first: a command added after the swap signals again.
  wake_.drain();
  const MutexLock lock(mutex_);
  has_commands_.store(false, std::memory_order_release);
  return std::exchange(commands_, {});
}

}  // namespace weightcast
