#include "weightcast/control/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "joined_group.h"

namespace weightcast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::host_options;
using testing::join_options;
using testing::kPatience;
using ::testing::StartsWith;

TEST(Address, GoodOnesAreResolved) {
  const auto v4 = parse_listen_address("tcp://127.0.0.1:80");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 80);
  EXPECT_FALSE(v4->is_wildcard || v4->is_v6);
  const auto v6 = parse_listen_address("tcp://[::1]:0");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_TRUE(v6->is_v6);
  const auto mapped = parse_listen_address("tcp://[::ffff:127.0.0.1]:65535");
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->is_v6);
  EXPECT_FALSE(mapped->is_wildcard);
  const auto name = parse_listen_address("tcp://localhost:1");
  ASSERT_TRUE(name) << name.error().message();
  EXPECT_FALSE(name->is_wildcard);
}

TEST(Address, WildcardsAreKnownAsSuch) {
  for (const auto* text :
       {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0", "tcp://[::ffff:0.0.0.0]:0"}) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_TRUE(address->is_wildcard) << text;
  }
}

TEST(Address, BadOnesAreTheCallersFault) {
  for (const auto* text :
       {"", "tcp://", "tcp://:1", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:-1", "tcp://127.0.0.1:1x", "tcp://::1:5", "tcp://[::1]", "tcp://[::1:5",
        "tcp://[127.0.0.1]:5", "udp://127.0.0.1:1", "127.0.0.1:1", "tcp://[zz]:1",
        "tcp://no-such-host.invalid:1"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(address.error().message(), HasSubstr(text));
  }
}

TEST(Address, AWildcardPublishesTheLoopbackLast) {
  const auto address = parse_listen_address("tcp://0.0.0.0:0");
  ASSERT_TRUE(address);
  const auto endpoints = published_endpoints(*address, 77);
  ASSERT_TRUE(endpoints) << endpoints.error().message();
  EXPECT_THAT(*endpoints, Contains("tcp://127.0.0.1:77"));
  EXPECT_THAT(endpoints->back(), StartsWith("tcp://127."));
}

// Joins a group that listens at `listen` over the first endpoint that it publishes.
void expect_joinable(const std::string& listen) {
  HostGroupOptions options = host_options(1);
  options.listen = listen;
  auto root = Group::host(options);
  ASSERT_TRUE(root) << listen << ": " << root.error().message();
  ASSERT_FALSE((*root)->ticket().endpoints.empty());
  for (const std::string& endpoint : (*root)->ticket().endpoints) {
    EXPECT_EQ(endpoint.find(":0\0", endpoint.size() - 2), std::string::npos) << endpoint;
  }
  auto member = Group::join(join_options((*root)->ticket()));
  ASSERT_TRUE(member) << listen << ": " << member.error().message();
  EXPECT_TRUE((*root)->gather(kPatience));
}

TEST(GroupAddress, EveryKindOfAddressCanBeJoined) {
  for (const auto* listen :
       {"tcp://127.0.0.1:0", "tcp://localhost:0", "tcp://[::1]:0", "tcp://[::ffff:127.0.0.1]:0",
        "tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0", "tcp://[::ffff:0.0.0.0]:0"}) {
    expect_joinable(listen);
  }
}

TEST(GroupAddress, AnyOfThePublishedAddressesLeadsToTheRoot) {
  HostGroupOptions options = host_options(1);
  options.listen = "tcp://*:0";
  size_t num_endpoints = 1;
  for (size_t i = 0; i < num_endpoints; ++i) {
    auto root = Group::host(options);
    ASSERT_TRUE(root);
    Ticket ticket = (*root)->ticket();
    num_endpoints = ticket.endpoints.size();
    ticket.endpoints = {ticket.endpoints[i]};
    auto member = Group::join(join_options(ticket));
    ASSERT_TRUE(member) << ticket.endpoints[0] << ": " << member.error().message();
  }
}

TEST(GroupAddress, AnEndpointThatLeadsNowhereIsPassedOver) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  Ticket ticket = (*root)->ticket();
  // Nobody listens on the discard port, and the second is no address at all.
  ticket.endpoints.insert(ticket.endpoints.begin(), {"tcp://127.0.0.1:9", "tcp://nonsense"});
  auto member = Group::join(join_options(ticket));
  ASSERT_TRUE(member) << member.error().message();
}

TEST(GroupAddress, AnAddressInUseIsRefusedByName) {
  auto first = Group::host(host_options(1));
  ASSERT_TRUE(first);
  HostGroupOptions options = host_options(1);
  options.listen = (*first)->ticket().endpoints.front();
  const auto second = Group::host(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kRefused);
  EXPECT_THAT(second.error().message(), HasSubstr(options.listen));
  EXPECT_THAT(second.error().message(), HasSubstr("in use"));
}

TEST(GroupAddress, AnAddressOfAnotherMachineIsTheCallersFault) {
  HostGroupOptions options = host_options(1);
  options.listen = "tcp://192.0.2.1:0";  // TEST-NET-1 of RFC 5737
  const auto root = Group::host(options);
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weightcast
