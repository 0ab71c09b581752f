// Peers that libzmq's own sockets and plain ones imitate: without the ticket, or with it and ill
// behaved.
#include <array>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "joined_group.h"
#include "random_messages.h"
#include "weightcast/base/fd.h"
#include "weightcast/control/wire.h"
#include "weightcast/control/zmq_socket.h"

namespace weightcast {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::host_options;
using testing::join_options;
using testing::JoinedGroup;
using testing::kPatience;
using testing::Random;
using testing::wait_failure;

uint16_t port_of(const Ticket& ticket) {
  const std::string& endpoint = ticket.endpoints.front();
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

// A plain TCP connection that sends `bytes` and stays.
Fd connect_plain(const Ticket& ticket, std::string_view bytes) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of(ticket));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  return fd;
}

// A peer made of a libzmq socket.
struct RawPeer {
  ZmqContext context;
  ZmqSocket socket;

  void send(const std::vector<std::byte>& bytes) { ASSERT_EQ(socket.send(bytes, false), 0); }

  // The next message that is no heartbeat.
  Result<Message> next() {
    const std::array<int, 1> fds = {socket.fd()};
    const Deadline deadline = Deadline::after(kPatience);
    while (!deadline.expired()) {
      while (const auto frames = socket.receive()) {
        auto message = decode_message(frames->back().bytes());
        if (message && std::holds_alternative<Heartbeat>(message->body)) continue;
        return message;
      }
      std::ignore = wait_readable(fds, std::min(deadline, Deadline::after(Duration(100))));
    }
    return Error(Code::kDeadline, "no message");
  }
};

enum class Security { kNone, kTicket };

RawPeer connect_raw(const Ticket& ticket, Security security) {
  auto context = ZmqContext::create();
  EXPECT_TRUE(context);
  auto socket = ZmqSocket::create(*context, ZMQ_DEALER);
  EXPECT_TRUE(socket);
  if (security == Security::kTicket) use_client_keys(*socket, ticket);
  EXPECT_EQ(socket->connect(ticket.endpoints.front()), 0);
  return {*std::move(context), *std::move(socket)};
}

std::vector<std::byte> hello(uint64_t number = 1) {
  return encode({.number = number, .epoch = 1, .body = Hello{}});
}

// Whether a whole group still comes about and works beside what the test has done to its root.
void expect_works(Group& root) {
  auto member = Group::join(join_options(root.ticket()));
  ASSERT_TRUE(member) << member.error().message();
  ASSERT_TRUE(root.gather(kPatience));
  std::jthread answering([&] {
    const auto announcement = (*member)->next_announcement(kPatience);
    ASSERT_TRUE(announcement) << announcement.error().message();
    (*member)->reply(Ready{1});
  });
  const auto replies = root.exchange(Begin{.sequence = 1}, kPatience);
  EXPECT_TRUE(replies) << replies.error().message();
}

TEST(GroupStrangers, BytesThatAreNotZeroMqDoNotDisturb) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  const Ticket& ticket = (*root)->ticket();
  std::vector<Fd> open;
  Random random(20260104);
  for (int i = 0; i < 20; ++i) {
    std::string bytes(1 + random() % 4000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    open.push_back(connect_plain(ticket, bytes));
  }
  open.push_back(connect_plain(ticket, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  // A pickle that would run a command where one is loaded.
  open.push_back(connect_plain(ticket,
                               "\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix"
                               "\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85R."));
  // The greeting of ZMTP 3.0 with CURVE, then a frame that claims to have 2^62 bytes.
  std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE", 17);
  greeting.resize(64, '\0');
  open.push_back(connect_plain(ticket, greeting + std::string("\x02\x40\0\0\0\0\0\0\0", 9)));
  expect_works(**root);
}

TEST(GroupStrangers, IdleAndPassingConnectionsDoNotStall) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  std::vector<Fd> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(connect_plain((*root)->ticket(), ""));
    connect_plain((*root)->ticket(), "").reset();
  }
  expect_works(**root);
}

TEST(GroupStrangers, AZeroMqPeerWithoutCurveGetsNothing) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  RawPeer peer = connect_raw((*root)->ticket(), Security::kNone);
  peer.send(hello());
  expect_works(**root);
  EXPECT_FALSE(peer.socket.receive());
}

TEST(GroupStrangers, AKeyThatIsNotTheTicketsIsRefused) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  Ticket forged = (*root)->ticket();
  forged.client = *make_key_pair();
  const auto refused = Group::join(join_options(forged));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kRefused);
  EXPECT_THAT(refused.error().message(), EndsWith("does not accept this ticket"));
  expect_works(**root);
}

TEST(GroupStrangers, AnotherProtocolVersionIsToldBoth) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  RawPeer peer = connect_raw((*root)->ticket(), Security::kTicket);
  peer.send(encode({.number = 1, .epoch = 1, .body = Hello{.protocol = 9}}));
  const auto answer = peer.next();
  ASSERT_TRUE(answer) << answer.error().message();
  const auto* refusal = std::get_if<Refusal>(&answer->body);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->code, Code::kRefused);
  EXPECT_THAT(refusal->text, HasSubstr("version 9, while this is version 1"));
  expect_works(**root);
}

TEST(GroupStrangers, ATicketHolderThatDoesNotSayHelloIsIgnored) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  RawPeer peer = connect_raw((*root)->ticket(), Security::kTicket);
  peer.send({std::byte{1}, std::byte{2}});
  peer.send(encode({.number = 1, .epoch = 1, .body = Abort{1, Error(Code::kInternal, "x")}}));
  peer.send(hello(2));
  expect_works(**root);
}

TEST(GroupStrangers, AForeignServerIsNoRoot) {
  // Answers every connection with something that is not ZMTP, like another service on the port.
  Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(server.get(), generic, size), 0);
  ASSERT_EQ(::listen(server.get(), 8), 0);
  ASSERT_EQ(::getsockname(server.get(), generic, &size), 0);
  std::jthread serving([&](const std::stop_token& stop) {
    const std::array<int, 1> fds = {server.get()};
    while (!stop.stop_requested()) {
      if (!wait_readable(fds, Deadline::after(Duration(20)))) continue;
      const Fd connection(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
      constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
      ::send(connection.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    }
  });
  Random random(20260105);
  Ticket ticket = testing::random_ticket(random);
  ticket.server_public_key = make_key_pair()->public_key;
  ticket.client = *make_key_pair();
  ticket.endpoints = {"tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
  const auto refused = Group::join(join_options(ticket));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kRefused) << refused.error().message();
}

// A group of a raw member, rank 1, and an ordinary one.
struct RawGroup {
  std::unique_ptr<Group> root;
  RawPeer raw;
  std::unique_ptr<Group> other;
};

RawGroup gather_raw() {
  auto root = Group::host(host_options(2));
  EXPECT_TRUE(root);
  RawPeer raw = connect_raw((*root)->ticket(), Security::kTicket);
  raw.send(encode({.number = 1, .epoch = 1, .body = Hello{.wanted_rank = 1}}));
  auto other = Group::join(join_options((*root)->ticket(), 2));
  EXPECT_TRUE(other) << other.error().message();
  EXPECT_TRUE((*root)->gather(kPatience));
  return {*std::move(root), std::move(raw), *std::move(other)};
}

// Joins, sends `bytes` as the second message, and expects that rank 1 is lost because of `why`.
void expect_lost(const std::vector<std::byte>& bytes, const std::string& why) {
  RawGroup group = gather_raw();
  group.raw.send(bytes);
  const Error seen = wait_failure(*group.root);
  EXPECT_EQ(seen.code(), Code::kPeerLost);
  EXPECT_EQ(seen.rank(), 1);
  EXPECT_THAT(seen.message(), HasSubstr(why));
  EXPECT_EQ(wait_failure(*group.other), seen);
}

TEST(GroupStrangers, AMemberOutOfProtocolIsLost) {
  expect_lost({std::byte{0}}, "a message from it is malformed");
  expect_lost(encode({.number = 3, .epoch = 1, .body = Heartbeat{}}), "messages from it were lost");
  expect_lost(encode({.number = 1, .epoch = 1, .body = Heartbeat{}}), "messages from it were lost");
  expect_lost(hello(2), "it sent what no member sends");
  expect_lost(encode({.number = 2, .epoch = 1, .body = Begin{}}), "it sent what no member sends");
}

TEST(GroupStrangers, AMessageOfAMemberThatIsTooLargeIsALoss) {
  RawGroup group = gather_raw();
  group.raw.send(std::vector<std::byte>(1 << 20));
  EXPECT_EQ(wait_failure(*group.root).rank(), 1);
}

TEST(GroupStrangers, AbortsOfAnotherEpochAreIgnored) {
  RawGroup group = gather_raw();
  group.raw.send(encode({.number = 2, .epoch = 0, .body = Abort{0, Error(Code::kInternal, "x")}}));
  group.raw.send(encode({.number = 3, .epoch = 9, .body = Abort{9, Error(Code::kInternal, "y")}}));
  group.raw.send(encode({.number = 4, .epoch = 1, .body = Abort{1, Error(Code::kInternal, "z")}}));
  EXPECT_EQ(wait_failure(*group.root), Error(Code::kInternal, "z", 1));
}

}  // namespace
}  // namespace weightcast
