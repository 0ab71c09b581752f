#include "weightcast/handoff/link.h"

#include <array>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.h"

namespace weightcast::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Link, RanksConnectInAnyOrderAndAreToldApart) {
  auto listener = LinkListener::create().value();
  std::vector<Child> children;
  for (const int rank : {3, 1, 4, 2}) {
    children.emplace_back([&listener, rank]() -> std::string {
      const auto link = connect_link(listener.name(), listener.token(), rank, soon());
      if (!link) return link.error().message();
      const auto message = receive_message(*link, -1, soon());
      if (!message) return message.error().message();
      const auto sent = send_message(*link, bytes_of("rank " + std::to_string(rank)), {});
      return sent ? "" : sent.error().message();
    });
  }
  const auto links = listener.accept_all(4, -1, soon());
  ASSERT_TRUE(links) << links.error().message();
  for (int rank = 1; rank <= 4; ++rank) {
    const Fd& link = (*links)[static_cast<size_t>(rank) - 1];
    ASSERT_TRUE(send_message(link, bytes_of("who"), {}));
    EXPECT_EQ(receive_message(link, -1, soon())->bytes, bytes_of("rank " + std::to_string(rank)));
  }
  for (Child& child : children) EXPECT_EQ(child.report(), "");
}

TEST(Link, AcceptAllNamesTheRanksThatDidNotCome) {
  auto listener = LinkListener::create().value();
  EXPECT_EQ(listener.accept_all(0, -1, soon())->size(), 0u);
  const Fd second = connect_as(listener, 2);
  const auto links = listener.accept_all(3, -1, shortly());
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().code(), Code::kDeadline);
  EXPECT_THAT(links.error().message(), MatchesRegex("no link from rank 1, 3 for [0-9.]+ m?s"));
}

TEST(Link, AFailureEndsTheWaits) {
  auto listener = LinkListener::create().value();
  const EventFd failure = EventFd::create().value();
  failure.signal();
  EXPECT_EQ(listener.accept_all(1, failure.fd(), soon()).error().code(), Code::kPeerLost);
  const auto [ours, theirs] = make_link();
  EXPECT_EQ(receive_message(ours, failure.fd(), soon()).error().code(), Code::kPeerLost);
}

TEST(Link, WithoutAListenerTheLeaderIsOnAnotherHost) {
  const std::string token(kLinkTokenSize, 'x');
  const auto link = connect_link("weightcast-nobody-listens-here", token, 1, soon());
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::kUnsupported);
}

TEST(Link, NamesAndTokensThatCanNotBeAreCorruption) {
  const std::string token(kLinkTokenSize, 'x');
  EXPECT_EQ(connect_link("", token, 1, soon()).error().code(), Code::kCorruption);
  EXPECT_EQ(connect_link(std::string(200, 'n'), token, 1, soon()).error().code(),
            Code::kCorruption);
  EXPECT_EQ(connect_link("name", "short", 1, soon()).error().code(), Code::kCorruption);
}

TEST(Link, ALeaderThatDoesNotAnswerIsADeadline) {
  auto listener = LinkListener::create().value();
  const auto link = connect_link(listener.name(), listener.token(), 1, shortly());
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code(), Code::kDeadline);
}

TEST(Link, DescriptorsArriveUsableAndClosedOnExec) {
  const auto [ours, theirs] = make_link();
  const EventFd event = EventFd::create().value();
  const std::array<int, 2> fds{event.fd(), event.fd()};
  ASSERT_TRUE(send_message(ours, bytes_of("x"), fds));
  const auto message = receive_message(theirs, -1, soon());
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), 2u);
  for (const Fd& fd : message->fds) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  const uint64_t one = 1;
  ASSERT_EQ(::write(message->fds[1].get(), &one, sizeof one), 8);
  const std::array<int, 1> waited{event.fd()};
  EXPECT_TRUE(wait_readable(waited, soon()));
}

TEST(Link, HangUpIsALostPeer) {
  auto [ours, theirs] = make_link();
  theirs.reset();
  EXPECT_EQ(receive_message(ours, -1, soon()).error().code(), Code::kPeerLost);
  EXPECT_EQ(send_message(ours, bytes_of("x"), {}).error().code(), Code::kPeerLost);
}

TEST(Link, APeerThatReadsNothingDoesNotBlockTheSender) {
  const auto [ours, theirs] = make_link();
  const std::vector<std::byte> bytes(kMaxLinkMessageSize);
  Status status;
  for (int i = 0; i < 10'000 && status; ++i) status = send_message(ours, bytes, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kPeerLost);
}

TEST(Link, SilenceIsADeadline) {
  const auto [ours, theirs] = make_link();
  EXPECT_EQ(receive_message(ours, -1, shortly()).error().code(), Code::kDeadline);
}

TEST(Link, AMessageThatIsTooLargeIsCorruption) {
  const auto [ours, theirs] = make_link();
  const std::vector<char> bytes(kMaxLinkMessageSize + 1);
  ASSERT_GT(::send(ours.get(), bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(receive_message(theirs, -1, soon()).error().code(), Code::kCorruption);
}

// Sends `count` descriptors, which may be more than `send_message` allows.
void send_fds(const Fd& link, size_t count) {
  std::vector<int> fds(count, link.get());
  std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
  char byte = 1;
  iovec part{&byte, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
  ASSERT_EQ(::sendmsg(link.get(), &header, 0), 1);
}

TEST(Link, TooManyDescriptorsAreCorruptionAndAreClosed) {
  const auto [ours, theirs] = make_link();
  for (const size_t count : {kMaxLinkFds + 1, size_t{253}}) {
    const size_t before = num_open_fds();
    send_fds(ours, count);
    EXPECT_EQ(receive_message(theirs, -1, soon()).error().code(), Code::kCorruption);
    EXPECT_EQ(num_open_fds(), before);
  }
}

TEST(Link, WithoutRoomForDescriptorsItSaysWhatToRaise) {
  const auto [ours, theirs] = make_link();
  send_fds(ours, 8);
  Child child([&theirs = theirs]() -> std::string {
    const auto limit = static_cast<rlim_t>(::dup(0)) + 2;
    const rlimit few{limit, limit};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return "setrlimit";
    const auto message = receive_message(theirs, -1, soon());
    return message ? "received" : message.error().message();
  });
  EXPECT_THAT(child.report(), HasSubstr("`ulimit -n`"));
}

}  // namespace
}  // namespace weightcast::testing
