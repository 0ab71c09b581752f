#include "interrupts.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace weightcast {
namespace {

[[noreturn]] void end_process_by(int number) {
  std::signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(number);
  ::_exit(128 + number);
}

}  // namespace

Interrupts::Interrupts() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGRTMIN);  // wakes the thread at the end
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // What whoever started this program has it ignore, as nohup does, it goes on to ignore.
    struct sigaction action {};
    const bool known = ::sigaction(number, nullptr, &action) == 0;
    if (known && action.sa_handler != SIG_IGN) sigaddset(&signals_, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Interrupts::~Interrupts() {
  thread_.request_stop();
  pthread_kill(thread_.native_handle(), SIGRTMIN);
}

Error Interrupts::interruption(int number) {
  return Error(Code::kPeerLost, fmt::format("interrupted by SIG{}", ::sigabbrev_np(number)));
}

Status Interrupts::check() const {
  const int number = signal();
  if (number == 0) return {};
  return interruption(number);
}

void Interrupts::end_if_signalled() const {
  if (const int number = signal(); number != 0) end_process_by(number);
}

void Interrupts::watch(const std::stop_token& stop) {
  while (true) {
    int number = 0;
    if (sigwait(&signals_, &number) != 0) continue;
    if (stop.stop_requested()) return;
    if (number != SIGRTMIN) handle(number);
  }
}

void Interrupts::handle(int number) {
  Session* session = nullptr;
  {
    const MutexLock lock(mutex_);
    if (scopes_ == 0 || signal() != 0) end_process_by(number);
    signal_.store(number, std::memory_order_release);
    session = session_;
    aborting_ = session != nullptr;
  }
  if (session == nullptr) return;
  session->abort(interruption(number));
  const MutexLock lock(mutex_);
  aborting_ = false;
  idle_.notify_all();
}

Session* Interrupts::enter(Session* session) {
  Session* outer = nullptr;
  {
    const MutexLock lock(mutex_);
    ++scopes_;
    outer = session_;
    session_ = session;
  }
  // A signal that came before there was a session to abort.
  if (const int number = signal(); number != 0 && session != nullptr) {
    session->abort(interruption(number));
  }
  return outer;
}

void Interrupts::leave(Session* outer) {
  const MutexLock lock(mutex_);
  while (aborting_) idle_.wait_until(mutex_, Deadline::after(std::chrono::seconds(1)));
  --scopes_;
  session_ = outer;
}

InterruptScope::InterruptScope(Interrupts& interrupts, Session* session)
    : interrupts_(interrupts), outer_(interrupts.enter(session)) {}

InterruptScope::~InterruptScope() { interrupts_.leave(outer_); }

}  // namespace weightcast
