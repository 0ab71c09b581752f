#include "weightcast/base/fd.h"

#include <array>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace weightcast {
namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }
Deadline past() { return Deadline::after(std::chrono::seconds(-1)); }

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

struct Pipe {
  Fd read;
  Fd write;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TEST(Fd, ClosesItsDescriptorOnce) {
  Pipe pipe = make_pipe();
  const int number = pipe.read.get();
  {
    Fd moved = std::move(pipe.read);
    EXPECT_EQ(moved.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(pipe.read.valid());  // NOLINT(bugprone-use-after-move): that is the promise
}

TEST(Fd, ClosesWhatItHeldWhenAnotherIsMovedIn) {
  Pipe pipe = make_pipe();
  const int read = pipe.read.get();
  const int write = pipe.write.get();
  pipe.read = std::move(pipe.write);
  EXPECT_FALSE(is_open(read));
  EXPECT_TRUE(is_open(write));
  EXPECT_EQ(pipe.read.get(), write);
}

TEST(Fd, GivesItsDescriptorAway) {
  Pipe pipe = make_pipe();
  const int number = pipe.read.release();
  EXPECT_FALSE(pipe.read.valid());
  EXPECT_TRUE(is_open(number));
  const Fd owner(number);
}

TEST(EventFd, IsReadableFromSignalToDrain) {
  const EventFd event = *EventFd::create();
  const std::array fds{event.fd()};
  EXPECT_EQ(wait_readable(fds, past()).error().code(), Code::kDeadline);
  event.signal();
  event.signal();
  EXPECT_EQ(*wait_readable(fds, past()), 0u);
  event.drain();
  EXPECT_EQ(wait_readable(fds, past()).error().code(), Code::kDeadline);
  event.drain();  // never blocks
}

TEST(EventFd, SharesOneCounterWithADescriptorThatWasHandedOver) {
  const EventFd event = *EventFd::create();
  const EventFd other = EventFd::adopt(Fd(::dup(event.fd())));
  other.signal();
  const std::array fds{event.fd()};
  EXPECT_TRUE(wait_readable(fds, past()));
}

TEST(EventFd, WakesAThreadThatWaits) {
  const EventFd event = *EventFd::create();
  const std::jthread signaller([&] { event.signal(); });
  const std::array fds{event.fd()};
  EXPECT_TRUE(wait_readable(fds, soon()));
}

TEST(WaitReadable, NamesTheLowestThatIsReady) {
  std::vector<EventFd> events;
  std::vector<int> fds;
  for (int i = 0; i < 8; ++i) {
    events.push_back(*EventFd::create());
    fds.push_back(events.back().fd());
  }
  events[7].signal();
  EXPECT_EQ(*wait_readable(fds, soon()), 7u);
  events[3].signal();
  EXPECT_EQ(*wait_readable(fds, soon()), 3u);
}

TEST(WaitReadable, SeesAHangUp) {
  Pipe pipe = make_pipe();
  const std::array fds{pipe.read.get()};
  EXPECT_FALSE(wait_readable(fds, past()));
  pipe.write.reset();
  EXPECT_TRUE(wait_readable(fds, soon()));
}

TEST(WaitReadableDeathTest, TakesAtMostEight) {
  const std::vector<int> fds(9, -1);
  EXPECT_DEATH((void)wait_readable(fds, past()), "fds.size");
}

TEST(CheckDescriptorsLeft, NamesTheLimitWhenThereAreTooFew) {
  EXPECT_TRUE(check_descriptors_left(8));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Pipe pipe = make_pipe();
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(pipe.write.get()) + 5;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status enough = check_descriptors_left(4);
  const Status too_few = check_descriptors_left(5);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(enough);
  ASSERT_FALSE(too_few);
  EXPECT_EQ(too_few.error().code(), Code::kNoResource);
  EXPECT_NE(too_few.error().message().find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace weightcast
