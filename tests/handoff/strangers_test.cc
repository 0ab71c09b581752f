// Whoever connects to a link without the right to do so is dropped and holds nobody up.
#include <array>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.h"

namespace weightcast::testing {
namespace {

using ::testing::HasSubstr;

Fd connect_raw(const std::string& name) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) fd.reset();
  return fd;
}

Child start_rank(const LinkListener& listener, int rank) {
  return Child([&listener, rank]() -> std::string {
    const auto link = connect_link(listener.name(), listener.token(), rank, soon());
    return link ? "" : link.error().message();
  });
}

size_t count_lines(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Accepts rank 1 of one behind what `strangers` hold, and returns what was logged.
std::string accept_behind(LinkListener& listener, Child& genuine) {
  ::testing::internal::CaptureStderr();
  const auto start = Clock::now();
  const auto links = listener.accept_all(1, -1, soon());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(links) << links.error().message();
  EXPECT_LT(seconds_between(start, Clock::now()), 20);
  EXPECT_EQ(genuine.report(), "");
  return log;
}

TEST(Strangers, SilentOnesHoldNobodyUp) {
  auto listener = LinkListener::create().value();
  std::vector<Fd> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(connect_raw(listener.name()));
  Child genuine = start_rank(listener, 1);
  const std::string log = accept_behind(listener, genuine);
  EXPECT_LE(count_lines(log, "dropped a connection"), 5u);
}

TEST(Strangers, EachThatSpeaksWronglyIsDroppedWithOneLine) {
  auto listener = LinkListener::create().value();
  std::vector<Fd> strangers;
  for (const size_t size : {1u, 47u, 48u, 49u, 4096u}) {
    strangers.push_back(connect_raw(listener.name()));
    const std::vector<char> garbage(size, 'g');
    ASSERT_GT(::send(strangers.back().get(), garbage.data(), size, MSG_NOSIGNAL), 0);
  }
  connect_raw(listener.name());  // hangs up at once
  Child genuine = start_rank(listener, 1);
  const std::string log = accept_behind(listener, genuine);
  EXPECT_EQ(count_lines(log, "dropped a connection"), 6u) << log;
  for (const Fd& stranger : strangers) {
    char byte = 0;
    EXPECT_EQ(::recv(stranger.get(), &byte, 1, 0), 0);
  }
}

TEST(Strangers, DescriptorsThatTheySendAreNotKept) {
  auto listener = LinkListener::create().value();
  const Fd stranger = connect_raw(listener.name());
  const EventFd event = EventFd::create().value();
  const std::array<int, 1> fds{event.fd()};
  ASSERT_TRUE(send_message(stranger, std::array<std::byte, 48>{}, fds));
  Child genuine = start_rank(listener, 1);
  const size_t before = num_open_fds();
  accept_behind(listener, genuine);
  EXPECT_EQ(num_open_fds(), before);
}

// Starts a process that connects as `rank` with `token` and reports the error.
Child start_refused(const LinkListener& listener, const std::string& token, int rank) {
  return Child([&listener, token, rank]() -> std::string {
    const auto link = connect_link(listener.name(), token, rank, soon());
    if (link) return "accepted";
    return link.error().code() == Code::kRefused ? "refused" : link.error().message();
  });
}

TEST(Strangers, AWrongTokenIsRefused) {
  auto listener = LinkListener::create().value();
  for (const size_t at : {size_t{0}, kLinkTokenSize - 1}) {
    std::string token = listener.token();
    token[at] = static_cast<char>(token[at] ^ 1);
    Child stranger = start_refused(listener, token, 1);
    EXPECT_FALSE(listener.accept_all(1, -1, Deadline::after(std::chrono::milliseconds(300))));
    EXPECT_EQ(stranger.report(), "refused");
  }
}

TEST(Strangers, ARankThatDoesNotExistIsRefused) {
  auto listener = LinkListener::create().value();
  std::vector<Child> strangers;
  for (const int rank : {-1, 0, 2, 65'536}) {
    strangers.push_back(start_refused(listener, listener.token(), rank));
  }
  Child genuine = start_rank(listener, 1);
  accept_behind(listener, genuine);
  // Those who were still in the queue learn it when the listener goes.
  { const LinkListener gone = std::move(listener); }
  for (Child& stranger : strangers) EXPECT_THAT(stranger.report(), HasSubstr("refused"));
}

TEST(Strangers, OfTwoThatClaimOneRankTheSecondIsRefused) {
  auto listener = LinkListener::create().value();
  std::vector<Child> both;
  for (int i = 0; i < 2; ++i) both.push_back(start_refused(listener, listener.token(), 1));
  EXPECT_FALSE(listener.accept_all(2, -1, Deadline::after(std::chrono::seconds(1))));
  std::vector<std::string> reports{both[0].report(), both[1].report()};
  std::ranges::sort(reports);
  EXPECT_EQ(reports, (std::vector<std::string>{"accepted", "refused"}));
}

TEST(Strangers, AFloodOfConnectionsHoldsNobodyUp) {
  auto listener = LinkListener::create().value();
  const EventFd flooding = EventFd::create().value();
  const Child flood([&]() -> std::string {
    std::vector<Fd> silent;
    for (int i = 0; i < 500; ++i) {
      silent.push_back(connect_raw(listener.name()));
      if (i == 200) flooding.signal();
    }
    ::pause();
    return "";
  });
  const std::array<int, 1> fds{flooding.fd()};
  ASSERT_TRUE(wait_readable(fds, soon()));
  Child genuine = start_rank(listener, 1);
  accept_behind(listener, genuine);
}

}  // namespace
}  // namespace weightcast::testing
