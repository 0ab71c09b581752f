#include "weightcast/backends/host/work_queue.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace weightcast {
namespace {

// Idle threads look up this often; it changes nothing but that every wait has a deadline.
constexpr auto kIdleWait = std::chrono::seconds(10);

}  // namespace

bool Adversary::holds() {
  const bool first = std::exchange(first_, false);
  return random_() % 4 != 0 || first;
}

void Adversary::pause() {
  const uint64_t draw = random_();
  if (draw % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 4 % 200));
}

uint64_t WorkQueue::push(Work work) {
  const MutexLock lock(mutex_);
  pending_.push_back(std::move(work));
  changed_.notify_all();
  return ++pushed_;
}

uint64_t WorkQueue::last() const {
  const MutexLock lock(mutex_);
  return pushed_;
}

Status WorkQueue::wait_done(uint64_t number, Deadline deadline) {
  const MutexLock lock(mutex_);
  if (number > demanded_) {
    demanded_ = number;
    changed_.notify_all();
  }
  while (done_ < number) {
    if (deadline.expired()) return Error(Code::kDeadline, "the work of a stream is not done");
    changed_.wait_until(mutex_, deadline);
  }
  return {};
}

bool WorkQueue::take(Work& work) {
  const bool held = adversary_.holds();
  const MutexLock lock(mutex_);
  while (pending_.empty() || (held && demanded_ <= done_ && !closed_)) {
    if (pending_.empty() && closed_) return false;
    changed_.wait_until(mutex_, Deadline::after(kIdleWait));
  }
  work = std::move(pending_.front());
  pending_.pop_front();
  return true;
}

void WorkQueue::run() {
  for (Work work; take(work);) {
    adversary_.pause();
    work(adversary_);
    work = nullptr;
    const MutexLock lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

void WorkQueue::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Status Mark::wait(Deadline deadline) const {
  if (queue == nullptr) return {};
  return queue->wait_done(number, deadline);
}

}  // namespace weightcast
