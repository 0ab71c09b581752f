#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "joined_group.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using testing::host_options;
using testing::join_options;
using testing::JoinedGroup;
using testing::kPatience;
using testing::make_joined_group;

using JoinResult = Result<std::unique_ptr<Group>>;

TEST(GroupJoin, EveryRankKnowsWhoItIsAndWhatTheRootDecided) {
  for (const int num_members : {1, 2, 8}) {
    const HostGroupOptions options = host_options(num_members);
    const JoinedGroup group = make_joined_group(options);
    const auto peers = group.root->peers();
    ASSERT_EQ(peers.size(), static_cast<size_t>(num_members + 1));
    for (int rank = 1; rank <= num_members; ++rank) {
      const Group& member = *group.members[static_cast<size_t>(rank - 1)];
      EXPECT_EQ(member.rank(), rank);
      EXPECT_EQ(member.world_size(), num_members + 1);
      EXPECT_EQ(member.epoch(), 1u);
      EXPECT_EQ(member.config(), options.config);
      EXPECT_EQ(member.peers()[0], peers[0]);
      EXPECT_EQ(member.peers()[1], peers[static_cast<size_t>(rank)]);
      EXPECT_FALSE(member.failure());
    }
  }
}

TEST(GroupJoin, AGroupOfOneIsCompleteAtOnce) {
  auto root = Group::host(host_options(0));
  ASSERT_TRUE(root);
  EXPECT_TRUE((*root)->gather(Duration(0)));
  const auto replies = (*root)->exchange(Begin{}, Duration(0));
  ASSERT_TRUE(replies);
  EXPECT_TRUE(replies->empty());
}

TEST(GroupJoin, WantedRanksComeFirstAndTheRestFillTheGaps) {
  auto root = Group::host(host_options(4));
  ASSERT_TRUE(root);
  std::vector<int> got(4);
  {
    const std::vector<int> wanted = {-1, 2, 4, -1};
    std::vector<std::jthread> threads;  // last: they use what stands above
    for (size_t i = 0; i < wanted.size(); ++i) {
      threads.emplace_back([&, i] {
        auto member = Group::join(join_options((*root)->ticket(), wanted[i]));
        got[i] = member ? (*member)->rank() : -1;
      });
    }
  }
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(got[2], 4);
  EXPECT_EQ(std::set<int>(got.begin(), got.end()), (std::set<int>{1, 2, 3, 4}));
}

// Tries to join `root` and expects to be refused with `text`, with the group none the worse.
void expect_refused(const Ticket& ticket, int wanted_rank, const std::string& text) {
  const JoinResult refused = Group::join(join_options(ticket, wanted_rank));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kRefused) << refused.error().message();
  EXPECT_THAT(refused.error().message(), HasSubstr(text));
}

TEST(GroupJoin, ARankOutOfRangeIsRefusedAndTheGroupGoesOn) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  for (const int rank : {0, 2, -2, 70'000}) {
    const JoinResult refused = Group::join(join_options((*root)->ticket(), rank));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kRefused) << refused.error().message();
  }
  EXPECT_TRUE(Group::join(join_options((*root)->ticket(), 1)));
}

TEST(GroupJoin, ALateJoinerIsToldThatTheGroupIsComplete) {
  JoinedGroup group = make_joined_group(2);
  expect_refused(group.root->ticket(), -1, "the group is complete");
  expect_refused(group.root->ticket(), 2, "rank 2 is taken by host");
  EXPECT_FALSE(group.root->failure());
}

TEST(GroupJoin, ARankThatIsTakenIsRefusedWhileTheGroupGathers) {
  auto root = Group::host(host_options(2));
  ASSERT_TRUE(root);
  // Two want rank 1 of a group of three, so that one of them is refused and the other still waits.
  std::vector<std::optional<JoinResult>> results(2);
  std::atomic<int> num_refused = 0;
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        result = Group::join(join_options((*root)->ticket(), 1));
        if (*result) return;
        ++num_refused;
        num_refused.notify_one();
      });
    }
    num_refused.wait(0);
    JoinResult last = Group::join(join_options((*root)->ticket()));
    ASSERT_TRUE(last) << last.error().message();
    EXPECT_EQ((*last)->rank(), 2);
    threads.clear();
  }
  ASSERT_EQ(num_refused, 1);
  const auto& refused = *std::ranges::find_if(results, [](const auto& r) { return !*r; });
  EXPECT_THAT(refused->error().message(), HasSubstr("rank 1 is taken by host"));
  EXPECT_TRUE((*root)->gather(kPatience));
}

TEST(GroupJoin, TheRootSaysHowManyAreMissing) {
  auto root = Group::host(host_options(3));
  ASSERT_TRUE(root);
  const Status status = (*root)->gather(Duration(20));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kDeadline);
  EXPECT_THAT(status.error().message(), HasSubstr("3 of 3 members have not joined"));
}

TEST(GroupJoin, AMemberDoesNotWaitForTheOthersForEver) {
  auto root = Group::host(host_options(2));
  ASSERT_TRUE(root);
  JoinGroupOptions options = join_options((*root)->ticket());
  options.timeout = Duration(1000);
  const JoinResult member = Group::join(options);
  ASSERT_FALSE(member);
  EXPECT_EQ(member.error().code(), Code::kDeadline) << member.error().message();
}

TEST(GroupJoin, AMemberThatGivesUpFailsTheGroupThatGathers) {
  auto root = Group::host(host_options(3));
  ASSERT_TRUE(root);
  JoinResult patient = Error(Code::kInternal, "not run");
  std::jthread other([&] { patient = Group::join(join_options((*root)->ticket())); });
  JoinGroupOptions options = join_options((*root)->ticket());
  options.timeout = Duration(1000);
  EXPECT_FALSE(Group::join(options));
  other.join();
  ASSERT_FALSE(patient);
  EXPECT_EQ(patient.error().code(), Code::kPeerLost) << patient.error().message();
  const Status status = (*root)->gather(kPatience);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kPeerLost);
}

TEST(GroupJoin, NobodyListeningIsADeadlineThatNamesTheEndpoint) {
  Ticket ticket;
  {
    auto root = Group::host(host_options(1));
    ASSERT_TRUE(root);
    ticket = (*root)->ticket();
  }
  JoinGroupOptions options = join_options(ticket);
  options.timeout = Duration(100);
  const JoinResult member = Group::join(options);
  ASSERT_FALSE(member);
  EXPECT_EQ(member.error().code(), Code::kDeadline);
  EXPECT_THAT(member.error().message(), HasSubstr(ticket.endpoints.front()));
}

TEST(GroupJoin, ATicketThatIsRenewedWhileNobodyListensIsUsed) {
  auto old_root = Group::host(host_options(1));
  ASSERT_TRUE(old_root);
  JoinGroupOptions options = join_options((*old_root)->ticket());
  old_root->reset();
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  int num_asked = 0;
  options.reread_ticket = [&]() -> std::optional<Ticket> {
    if (++num_asked < 3) return std::nullopt;
    return (*root)->ticket();
  };
  const JoinResult member = Group::join(options);
  ASSERT_TRUE(member) << member.error().message();
  EXPECT_EQ(num_asked, 3);
}

TEST(GroupJoin, AStaleTicketIsRefusedUnlessThereIsANewerOne) {
  auto root = Group::host(host_options(1));
  auto other = Group::host(host_options(1));
  ASSERT_TRUE(root && other);
  Ticket stale = (*other)->ticket();
  stale.endpoints = (*root)->ticket().endpoints;
  JoinGroupOptions options = join_options(stale);
  const JoinResult refused = Group::join(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kRefused);
  EXPECT_EQ(refused.error().message(),
            "the root at " + stale.endpoints.front() + " does not accept this ticket");
  options.reread_ticket = [&] { return (*root)->ticket(); };
  const JoinResult member = Group::join(options);
  ASSERT_TRUE(member) << member.error().message();
}

TEST(GroupJoin, ATicketOfAnotherProtocolVersionIsRefused) {
  auto root = Group::host(host_options(1));
  ASSERT_TRUE(root);
  Ticket ticket = (*root)->ticket();
  ticket.protocol = 2;
  expect_refused(ticket, -1, "version 2");
}

TEST(GroupJoin, TwoGroupsAtOnceDoNotMeet) {
  JoinedGroup first = make_joined_group(2);
  JoinedGroup second = make_joined_group(2);
  first.root->abort(Error(Code::kBadInput, "only here"));
  EXPECT_EQ(testing::wait_failure(*first.members[1]).message(), "only here");
  EXPECT_FALSE(second.root->failure());
  EXPECT_FALSE(second.members[0]->failure());
}

TEST(GroupJoin, MembersThatStartInAnyOrderJoinOrAllSayWhyNot) {
  constexpr uint64_t kSeed = 20260103;
  std::mt19937_64 random(kSeed);
  for (int run = 0; run < 100; ++run) {
    auto root = Group::host(host_options(3));
    ASSERT_TRUE(root);
    std::vector<JoinResult> results;
    for (int i = 0; i < 3; ++i) results.emplace_back(Error(Code::kInternal, "not run"));
    std::vector<int> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    {
      std::vector<std::jthread> threads;
      for (const int i : order) {
        const auto delay = std::chrono::microseconds(random() % 5000);
        threads.emplace_back([&, i, delay] {
          std::this_thread::sleep_for(delay);  // the start order is what is tested
          results[static_cast<size_t>(i)] = Group::join(join_options((*root)->ticket()));
        });
      }
    }
    std::set<int> ranks;
    for (const JoinResult& result : results) {
      ASSERT_TRUE(result) << "run " << run << " seed " << kSeed << ": " << result.error().message();
      ranks.insert((*result)->rank());
    }
    ASSERT_EQ(ranks, (std::set<int>{1, 2, 3}));
    ASSERT_TRUE((*root)->gather(kPatience));
  }
}

}  // namespace
}  // namespace weightcast
