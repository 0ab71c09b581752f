// Mutexes that clang's -Wthread-safety understands.
// Thread-safe by nature.
#pragma once

#include <condition_variable>
#include <mutex>

#include "weightcast/base/deadline.h"

#if defined(__clang__)
#define WEIGHTCAST_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define WEIGHTCAST_THREAD_ANNOTATION(x)
#endif
#define WEIGHTCAST_CAPABILITY(x) WEIGHTCAST_THREAD_ANNOTATION(capability(x))
#define WEIGHTCAST_SCOPED_CAPABILITY WEIGHTCAST_THREAD_ANNOTATION(scoped_lockable)
#define WEIGHTCAST_GUARDED_BY(x) WEIGHTCAST_THREAD_ANNOTATION(guarded_by(x))
#define WEIGHTCAST_REQUIRES(...) WEIGHTCAST_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define WEIGHTCAST_ACQUIRE(...) WEIGHTCAST_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define WEIGHTCAST_RELEASE(...) WEIGHTCAST_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define WEIGHTCAST_NO_THREAD_SAFETY_ANALYSIS WEIGHTCAST_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace weightcast {

class WEIGHTCAST_CAPABILITY("mutex") Mutex {
 public:
  void lock() WEIGHTCAST_ACQUIRE() { mutex_.lock(); }
  void unlock() WEIGHTCAST_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class WEIGHTCAST_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEIGHTCAST_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() WEIGHTCAST_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  /// Waits for a notification; false when `deadline` passed first. Wakes spuriously: callers loop.
  bool wait_until(Mutex& mutex, Deadline deadline) WEIGHTCAST_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto status = condition_.wait_until(lock, deadline.time());
    lock.release();
    return status == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace weightcast
