#include "weightcast/base/sync.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weightcast {
namespace {

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// Whether the count reached `wanted` by `deadline`.
  bool wait_for(int wanted, Deadline deadline) {
    const MutexLock lock(mutex_);
    while (count_ < wanted) {
      if (!changed_.wait_until(mutex_, deadline) && count_ < wanted) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ WEIGHTCAST_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, KeepsThreadsApart) {
  Counter counter;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) counter.add();
      });
    }
  }
  EXPECT_TRUE(counter.wait_for(4000, Deadline::after(std::chrono::seconds(0))));
  EXPECT_FALSE(counter.wait_for(4001, Deadline::after(std::chrono::seconds(0))));
}

TEST(CondVar, WakesAWaiterAndHoldsTheMutexAgain) {
  Counter counter;
  const std::jthread adder([&] { counter.add(); });
  EXPECT_TRUE(counter.wait_for(1, Deadline::after(std::chrono::seconds(60))));
}

TEST(CondVar, GivesUpAtTheDeadline) {
  Counter counter;
  const auto start = Clock::now();
  EXPECT_FALSE(counter.wait_for(1, Deadline::after(std::chrono::milliseconds(20))));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
  counter.add();
  EXPECT_TRUE(counter.wait_for(1, Deadline::after(std::chrono::seconds(0))));
}

}  // namespace
}  // namespace weightcast
