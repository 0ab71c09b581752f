#include "weightcast/control/ticket.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_messages.h"
#include "weightcast/control/base64.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using testing::Random;
using testing::random_ticket;

constexpr uint64_t kSeed = 20260102;

TEST(Base64, EveryLengthComesBack) {
  Random random(kSeed);
  for (size_t size = 0; size < 200; ++size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const auto decoded = from_base64url(to_base64url(bytes));
    ASSERT_TRUE(decoded && *decoded == bytes);
  }
}

TEST(Base64, MatchesTheExamplesOfTheRfc) {
  const auto encoded = [](std::string_view text) {
    return to_base64url(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE");
  EXPECT_EQ(encoded("foob"), "Zm9vYg");
  EXPECT_EQ(encoded("\xfb\xff"), "-_8");
}

TEST(Base64, OnlyTheCanonicalTextIsAccepted) {
  for (const auto* text : {"A", "AB", "Zm9vYh", "Zm9v=", "Zm 9v", "Zm+v", "Zm/v"}) {
    EXPECT_FALSE(from_base64url(text)) << text;
  }
}

TEST(Ticket, ComesBackAsItWasWithSpaceAroundIt) {
  Random random(kSeed);
  for (size_t i = 0; i < 500; ++i) {
    const Ticket ticket = random_ticket(random);
    const auto decoded = decode_ticket(" \t\n" + encode(ticket) + "\r\n");
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_EQ(*decoded, ticket);
  }
}

TEST(Ticket, OfAnotherProtocolVersionIsRefused) {
  Random random(kSeed);
  Ticket ticket = random_ticket(random);
  ticket.protocol = 2;
  const auto decoded = decode_ticket(encode(ticket));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kRefused);
  EXPECT_THAT(decoded.error().message(), HasSubstr("version 2, while this is version 1"));
}

TEST(Ticket, AnythingElseIsCorrupt) {
  Random random(kSeed);
  const Ticket good = random_ticket(random);
  std::vector<std::string> texts = {"",
                                    "  ",
                                    "wc1:",
                                    "wc2:" + encode(good).substr(4),
                                    "wc1:!!!!",
                                    "wc1:" + std::string(100'000, 'A'),
                                    "wc1:AAAAAAAAAAAAAAAA"};
  const auto add = [&](auto change) {
    Ticket ticket = good;
    change(ticket);
    texts.push_back(encode(ticket));
  };
  add([](Ticket& t) { t.session_id = "xyz"; });
  add([](Ticket& t) { t.session_id.back() = 'G'; });
  add([](Ticket& t) { t.endpoints.clear(); });
  add([](Ticket& t) { t.endpoints.assign(65, "tcp://1.2.3.4:5"); });
  add([](Ticket& t) { t.endpoints = {"ipc:///tmp/x"}; });
  add([](Ticket& t) { t.endpoints = {"tcp://a b:1"}; });
  add([](Ticket& t) { t.endpoints = {"tcp://" + std::string(400, 'a') + ":1"}; });
  add([](Ticket& t) { t.server_public_key.pop_back(); });
  add([](Ticket& t) { t.client.secret_key[3] = '"'; });
  add([](Ticket& t) { t.client.public_key += 'a'; });
  for (const std::string& text : texts) {
    const auto decoded = decode_ticket(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code(), Code::kCorruption) << text;
  }
}

TEST(Ticket, MutatedTextNeverDecodesToSomethingElseThanATicket) {
  Random random(kSeed);
  for (size_t i = 0; i < 10'000; ++i) {
    std::string text = encode(random_ticket(random));
    text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    const auto decoded = decode_ticket(text);
    if (!decoded) continue;
    const auto again = decode_ticket(encode(*decoded));
    ASSERT_TRUE(again && *again == *decoded);
  }
}

TEST(KeyPair, IsNewEachTimeAndInZ85) {
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const auto keys = make_key_pair();
    ASSERT_TRUE(keys);
    EXPECT_EQ(keys->public_key.size(), 40u);
    EXPECT_EQ(keys->secret_key.size(), 40u);
    EXPECT_TRUE(seen.insert(keys->public_key).second);
  }
}

}  // namespace
}  // namespace weightcast
