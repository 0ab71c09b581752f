// Whoever connects to a link without the right to do so is dropped and holds nobody up.
#include <array>
#include <cstdint>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "stage.h"

namespace weightcast::testing {
namespace {

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

// Whether the listener hung up on `stranger` without a word.
bool was_dropped(const Fd& stranger) {
  char byte = 0;
  return ::recv(stranger.get(), &byte, 1, 0) == 0;
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

TEST(Strangers, ASilentOneIsDroppedWhileOthersAreWaitedFor) {
  auto listener = LinkListener::create().value();
  const Fd silent = connect_raw(listener.name());
  Child genuine([&]() -> std::string {
    const std::array<int, 1> fds{silent.get()};
    if (!wait_readable(fds, soon())) return "the stranger was kept";
    const auto link = connect_link(listener.name(), listener.token(), 1, soon());
    return link ? "" : link.error().message();
  });
  const std::string log = accept_behind(listener, genuine);
  EXPECT_EQ(count_lines(log, "it did not say who it is"), 1u);
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
  for (const Fd& stranger : strangers) EXPECT_TRUE(was_dropped(stranger));
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

TEST(Strangers, AWrongTokenIsRefused) {
  auto listener = LinkListener::create().value();
  for (const size_t at : {size_t{0}, kLinkTokenSize - 1}) {
    const EventFd refused = EventFd::create().value();
    Child stranger([&]() -> std::string {
      std::string token = listener.token();
      token[at] = static_cast<char>(token[at] ^ 1);
      const auto link = connect_link(listener.name(), token, 1, soon());
      refused.signal();
      if (link) return "accepted";
      return link.error().code() == Code::kRefused ? "" : link.error().message();
    });
    Child genuine([&]() -> std::string {
      const std::array<int, 1> fds{refused.fd()};
      if (!wait_readable(fds, soon())) return "the stranger was not refused";
      const auto link = connect_link(listener.name(), listener.token(), 1, soon());
      return link ? "" : link.error().message();
    });
    const std::string log = accept_behind(listener, genuine);
    EXPECT_EQ(count_lines(log, "its token is wrong"), 1u);
    EXPECT_EQ(stranger.report(), "");
  }
}

TEST(Strangers, ARankThatDoesNotExistIsRefused) {
  auto listener = LinkListener::create().value();
  std::vector<Fd> strangers;
  for (const int64_t rank : {int64_t{-1}, int64_t{0}, int64_t{2}, INT64_MAX, INT64_MIN}) {
    strangers.push_back(connect_as(listener, rank));
  }
  Child genuine = start_rank(listener, 1);
  const std::string log = accept_behind(listener, genuine);
  EXPECT_EQ(count_lines(log, "there is no rank"), strangers.size());
  for (const Fd& stranger : strangers) EXPECT_TRUE(was_dropped(stranger));
}

TEST(Strangers, OfTwoThatClaimOneRankTheSecondIsRefused) {
  auto listener = LinkListener::create().value();
  const Fd first = connect_as(listener, 1);
  const Fd second = connect_as(listener, 1);
  const Fd other = connect_as(listener, 2);
  const auto links = listener.accept_all(2, -1, soon());
  ASSERT_TRUE(links) << links.error().message();
  for (const Fd* accepted : {&first, &other}) {
    EXPECT_EQ(receive_message(*accepted, -1, soon())->bytes, std::vector{std::byte{1}});
  }
  EXPECT_TRUE(was_dropped(second));
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
