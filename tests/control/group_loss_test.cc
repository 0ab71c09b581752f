#include <array>
#include <csignal>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child.h"
#include "joined_group.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/size.h"

namespace weightcast {
namespace {

using testing::Child;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::host_options;
using testing::join_options;
using testing::JoinedGroup;
using testing::kPatience;
using testing::make_joined_group;
using testing::wait_failure;

constexpr Duration kHeartbeatTimeout{300};

// A pipe through which a ticket reaches a process that was forked before the group existed, since
// no process may fork once it has threads.
class TicketPipe {
 public:
  TicketPipe() {
    std::array<int, 2> fds{};
    if (::pipe(fds.data()) == 0) {
      read_ = Fd(fds[0]);
      write_ = Fd(fds[1]);
    }
  }
  void send(const Ticket& ticket) const {
    const std::string text = encode(ticket) + "\n";
    ASSERT_EQ(::write(write_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  Result<Ticket> receive() const {
    std::string text;
    for (char c = 0; ::read(read_.get(), &c, 1) == 1 && c != '\n';) text += c;
    return decode_ticket(text);
  }

 private:
  Fd read_;
  Fd write_;
};

// A process that joins as rank 1 and waits for announcements until it ends or `run` says so.
Child start_member(const TicketPipe& pipe) {
  return Child([&pipe]() -> std::string {
    const auto ticket = pipe.receive();
    if (!ticket) return ticket.error().message();
    auto group = Group::join(join_options(*ticket, 1));
    if (!group) return group.error().message();
    while (true) {
      const auto announcement = (*group)->next_announcement(kPatience);
      if (!announcement) return announcement.error().message();
      (*group)->reply(Ready{});
    }
  });
}

// The group of a forked rank 1, with `num_here` more members in this process.
struct ForkedGroup {
  std::unique_ptr<Group> root;
  std::unique_ptr<Group> other;  // rank 2
};

ForkedGroup gather_with(const TicketPipe& pipe, Duration heartbeat_timeout) {
  HostGroupOptions options = host_options(2);
  options.config.heartbeat_timeout = heartbeat_timeout;
  ForkedGroup group;
  auto root = Group::host(options);
  if (!root) return group;
  pipe.send((*root)->ticket());
  auto other = Group::join(join_options((*root)->ticket(), 2));
  if (other && (*root)->gather(kPatience)) group = {*std::move(root), *std::move(other)};
  return group;
}

TEST(GroupLoss, AKilledMemberIsSeenAtOnceByEverybody) {
  TicketPipe pipe;
  Child member = start_member(pipe);
  ForkedGroup group = gather_with(pipe, Duration(60'000));
  ASSERT_TRUE(group.root);
  group.root->set_step("a test of kills");
  const Clock::time_point start = Clock::now();
  member.signal(SIGKILL);
  const Error seen = wait_failure(*group.root);
  EXPECT_EQ(seen.code(), Code::kPeerLost);
  EXPECT_EQ(seen.rank(), 1);
  EXPECT_THAT(seen.message(), HasSubstr("rank 1 (host "));
  EXPECT_THAT(seen.message(), EndsWith("was lost while a test of kills: its connection closed"));
  EXPECT_EQ(wait_failure(*group.other), seen);
  // Far below the heartbeat timeout, for machines that are busy.
  EXPECT_LT(seconds_between(start, Clock::now()), 10);
  EXPECT_FALSE(group.root->renew());
  EXPECT_FALSE(group.other->renew());
}

TEST(GroupLoss, AStoppedMemberIsLostAfterTheHeartbeatTimeoutAndLearnsSoWhenItResumes) {
  TicketPipe pipe;
  Child member = start_member(pipe);
  ForkedGroup group = gather_with(pipe, kHeartbeatTimeout);
  ASSERT_TRUE(group.root);
  member.signal(SIGSTOP);
  const Error seen = wait_failure(*group.root);
  EXPECT_EQ(seen.code(), Code::kPeerLost);
  EXPECT_EQ(seen.rank(), 1);
  EXPECT_THAT(seen.message(), EndsWith("it sent nothing for 300 ms"));
  EXPECT_EQ(wait_failure(*group.other), seen);
  member.signal(SIGCONT);
  EXPECT_EQ(member.report(), seen.message());
}

TEST(GroupLoss, AKilledRootIsSeenAtOnceByItsMembers) {
  TicketPipe pipe;
  Child root([&pipe]() -> std::string {
    HostGroupOptions options = host_options(1);
    options.config.heartbeat_timeout = Duration(60'000);
    auto group = Group::host(options);
    if (!group) return group.error().message();
    pipe.send((*group)->ticket());
    const Status status = (*group)->gather(kPatience);
    if (!status) return status.error().message();
    return wait_failure(**group).message();
  });
  const auto ticket = pipe.receive();
  ASSERT_TRUE(ticket);
  auto member = Group::join(join_options(*ticket));
  ASSERT_TRUE(member) << member.error().message();
  (*member)->set_step("a test of kills");
  root.signal(SIGKILL);
  const auto announcement = (*member)->next_announcement(kPatience);
  ASSERT_FALSE(announcement);
  EXPECT_EQ(announcement.error().code(), Code::kPeerLost);
  EXPECT_EQ(announcement.error().rank(), 0);
  EXPECT_THAT(announcement.error().message(),
              EndsWith("was lost while a test of kills: its connection closed"));
}

TEST(GroupLoss, AStoppedRootIsLostAfterItsOwnHeartbeatTimeout) {
  TicketPipe pipe;
  Child root([&pipe]() -> std::string {
    HostGroupOptions options = host_options(1);
    options.config.heartbeat_timeout = kHeartbeatTimeout;
    auto group = Group::host(options);
    if (!group) return group.error().message();
    pipe.send((*group)->ticket());
    const Status status = (*group)->gather(kPatience);
    if (!status) return status.error().message();
    return wait_failure(**group).message();
  });
  const auto ticket = pipe.receive();
  ASSERT_TRUE(ticket);
  auto member = Group::join(join_options(*ticket));
  ASSERT_TRUE(member) << member.error().message();
  root.signal(SIGSTOP);
  const Error seen = wait_failure(**member);
  EXPECT_EQ(seen.code(), Code::kPeerLost);
  EXPECT_THAT(seen.message(), EndsWith("it sent nothing for 300 ms"));
  root.signal(SIGKILL);
}

TEST(GroupLoss, AMemberKilledWhileTheGroupGathersFailsItForEverybody) {
  TicketPipe pipe;
  Child member = start_member(pipe);
  auto root = Group::host(host_options(2));
  ASSERT_TRUE(root);
  const Clock::time_point before = (*root)->last_progress();
  pipe.send((*root)->ticket());
  const Deadline deadline = Deadline::after(kPatience);
  while ((*root)->last_progress() == before && !deadline.expired()) std::this_thread::yield();
  member.signal(SIGKILL);
  const Status status = (*root)->gather(kPatience);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kPeerLost) << status.error().message();
  EXPECT_THAT(status.error().message(), HasSubstr("a member (host "));
  EXPECT_THAT(status.error().message(), HasSubstr("while the group gathered"));
  const auto late = Group::join(join_options((*root)->ticket()));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message(), HasSubstr("the group has failed: "));
}

TEST(GroupLoss, AHangUpOfAWatchedSocketIsALoss) {
  JoinedGroup group = make_joined_group(2);
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
  Fd mine(fds[0]);
  Fd theirs(fds[1]);
  ASSERT_TRUE(group.root->watch(mine.get(), 2));
  mine.reset();  // the group has a duplicate of its own
  ASSERT_TRUE(group.members[0]->next_announcement(Duration(0)).error().code() == Code::kDeadline);
  EXPECT_FALSE(group.root->failure());
  theirs.reset();
  const Error seen = wait_failure(*group.root);
  EXPECT_EQ(seen.code(), Code::kPeerLost);
  EXPECT_EQ(seen.rank(), 2);
  EXPECT_EQ(wait_failure(*group.members[0]).rank(), 2);
}

TEST(GroupLoss, WatchingSomethingThatIsNoSocketIsAnError) {
  JoinedGroup group = make_joined_group(1);
  EXPECT_FALSE(group.root->watch(-1, 1));
}

TEST(GroupLoss, ThePauseOfARankItselfIsNobodyElsesSilence) {
  // The root and its member live in one process, so that both are stopped for longer than the
  // timeout, and neither may blame the other when they go on.
  TicketPipe out;
  TicketPipe in;
  Child both([&]() -> std::string {
    HostGroupOptions options = host_options(1);
    options.config.heartbeat_timeout = kHeartbeatTimeout;
    JoinedGroup group = make_joined_group(options);
    out.send(group.root->ticket());
    if (!in.receive()) return "was not told to go on";
    std::jthread member([&] {
      if (group.members[0]->next_announcement(kPatience)) group.members[0]->reply(Ready{1});
    });
    const auto replies = group.root->exchange(Begin{.sequence = 1}, kPatience);
    return replies ? "" : replies.error().message();
  });
  const auto ticket = out.receive();
  ASSERT_TRUE(ticket);
  both.signal(SIGSTOP);
  std::this_thread::sleep_for(4 * kHeartbeatTimeout);  // the pause that is tested
  both.signal(SIGCONT);
  in.send(*ticket);
  EXPECT_EQ(both.report(), "");
}

}  // namespace
}  // namespace weightcast
