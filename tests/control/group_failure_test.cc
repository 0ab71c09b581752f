#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "joined_group.h"
#include "weightcast/base/fd.h"
#include "weightcast/control/wire.h"

namespace weightcast {
namespace {

using ::testing::HasSubstr;
using testing::host_options;
using testing::JoinedGroup;
using testing::kPatience;
using testing::make_joined_group;
using ::testing::Not;
using testing::wait_failure;

const Error kCause(Code::kNoResource, "the disk is full");

// Takes one announcement of type `T` and answers it with `reply`.
template <typename T>
void answer(Group& member, const Reply& reply) {
  const auto announcement = member.next_announcement(kPatience);
  ASSERT_TRUE(announcement) << announcement.error().message();
  ASSERT_TRUE(std::holds_alternative<T>(*announcement));
  member.reply(reply);
}

TEST(GroupExchange, RepliesComeInRankOrderHoweverTheyArrive) {
  JoinedGroup group = make_joined_group(3);
  std::jthread members([&] {
    for (const size_t i : {2u, 0u, 1u}) answer<Begin>(*group.members[i], Ready{i + 10});
  });
  const auto replies = group.root->exchange(Begin{.sequence = 1}, kPatience);
  ASSERT_TRUE(replies) << replies.error().message();
  EXPECT_EQ(*replies, (std::vector<Reply>{Ready{10}, Ready{11}, Ready{12}}));
}

TEST(GroupExchange, ManyTensorsFitIntoOneAnnouncement) {
  JoinedGroup group = make_joined_group(2);
  Begin begin{.sequence = 1, .metas_known = MetasKnown::kAttached};
  for (int i = 0; i < 20'000; ++i) {
    begin.metas.push_back({"model.layers." + std::string(200, 'w') + std::to_string(i),
                           DType::kBf16,
                           {static_cast<uint64_t>(i), 4096}});
  }
  std::jthread members([&] {
    for (auto& member : group.members) {
      const auto got = member->next_announcement(kPatience);
      ASSERT_TRUE(got) << got.error().message();
      ASSERT_TRUE(std::get<Begin>(*got) == begin);
      member->reply(Ready{1});
    }
  });
  const auto replies = group.root->exchange(begin, kPatience);
  ASSERT_TRUE(replies) << replies.error().message();
}

TEST(GroupExchange, AnAnnouncementThatIsTooLargeIsRefusedByItsSender) {
  JoinedGroup group = make_joined_group(1);
  const TensorMeta meta{std::string(kMaxNameSize, 'x'), DType::kU8, {1}};
  const Begin begin{.metas = std::vector<TensorMeta>(kMaxMessageSize / kMaxNameSize, meta)};
  const auto replies = group.root->exchange(begin, kPatience);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(replies.error().message(), HasSubstr("256.0 MiB"));
  EXPECT_FALSE(group.root->failure());
}

TEST(GroupExchange, TheDeadlineNamesWhoIsMissingAndNobodyElse) {
  JoinedGroup group = make_joined_group(2);
  group.root->set_step("waiting for a test");
  std::jthread member([&] { answer<Begin>(*group.members[0], Ready{1}); });
  const auto replies = group.root->exchange(Begin{.sequence = 1}, Duration(2000));
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code(), Code::kDeadline);
  EXPECT_THAT(replies.error().message(), HasSubstr("while waiting for a test: rank 2 (host"));
  EXPECT_THAT(replies.error().message(), Not(HasSubstr("rank 1")));
}

TEST(GroupExchange, ALateReplyIsNotTakenForTheNextOne) {
  JoinedGroup group = make_joined_group(1);
  const auto first = group.root->exchange(Begin{.sequence = 1}, Duration(50));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code(), Code::kDeadline);
  EXPECT_THAT(first.error().message(), HasSubstr("rank 1 (host"));
  std::jthread member([&] {
    answer<Begin>(*group.members[0], Ready{1});
    answer<End>(*group.members[0], Done{.sequence = 2});
  });
  const auto second = group.root->exchange(End{.sequence = 2}, kPatience);
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(std::get<Done>(second->at(0)).sequence, 2u);
}

TEST(GroupExchange, ProgressOfAMissingRankResetsThePatience) {
  JoinedGroup group = make_joined_group(1);
  constexpr Duration kShort(1500);
  std::jthread member([&] {
    const auto announcement = group.members[0]->next_announcement(kPatience);
    ASSERT_TRUE(announcement);
    const Deadline end = Deadline::after(2 * kShort);
    while (!end.expired()) {
      group.members[0]->note_progress();
      std::this_thread::sleep_for(Duration(20));  // moves a little for twice the patience
    }
    group.members[0]->reply(Ready{1});
  });
  const auto replies = group.root->exchange(Begin{.sequence = 1}, kShort);
  ASSERT_TRUE(replies) << replies.error().message();
}

TEST(GroupExchange, ProgressOfTheRootResetsThePatienceOfMembers) {
  JoinedGroup group = make_joined_group(1);
  constexpr Duration kShort(1500);
  std::jthread member([&] { answer<Begin>(*group.members[0], Ready{1}); });
  const auto before = group.members[0]->last_progress();
  Result<Announcement> waited = Error(Code::kInternal, "not run");
  ASSERT_TRUE(group.root->exchange(Begin{.sequence = 1}, kPatience));
  member.join();
  std::jthread waiting([&] { waited = group.members[0]->next_announcement(kShort); });
  const Deadline end = Deadline::after(2 * kShort);
  while (!end.expired()) {
    group.root->note_progress();
    std::this_thread::sleep_for(Duration(20));  // moves a little for twice the patience
  }
  EXPECT_FALSE(group.root->exchange(End{.sequence = 1}, Duration(0)));
  waiting.join();
  EXPECT_TRUE(waited) << waited.error().message();
  EXPECT_GT(group.members[0]->last_progress(), before);
}

TEST(GroupExchange, AMemberWithoutNewsGivesUp) {
  JoinedGroup group = make_joined_group(1);
  const auto announcement = group.members[0]->next_announcement(Duration(20));
  ASSERT_FALSE(announcement);
  EXPECT_EQ(announcement.error().code(), Code::kDeadline);
  EXPECT_FALSE(group.members[0]->failure());
}

TEST(GroupAbort, OfTheRootReachesEveryMember) {
  JoinedGroup group = make_joined_group(3);
  group.root->abort(kCause);
  EXPECT_EQ(group.root->failure(), kCause.on_rank(0));
  for (const auto& member : group.members) EXPECT_EQ(wait_failure(*member), kCause.on_rank(0));
}

TEST(GroupAbort, OfAMemberReachesEverybodyWithItsRankAndText) {
  JoinedGroup group = make_joined_group(3);
  group.members[1]->abort(kCause);
  EXPECT_EQ(group.members[1]->failure(), kCause.on_rank(2));
  EXPECT_EQ(wait_failure(*group.root), kCause.on_rank(2));
  for (const auto& member : group.members) EXPECT_EQ(wait_failure(*member), kCause.on_rank(2));
}

TEST(GroupAbort, EndsEveryWait) {
  JoinedGroup group = make_joined_group(2);
  std::jthread waiting([&] {
    const auto announcement = group.members[0]->next_announcement(kPatience);
    ASSERT_TRUE(announcement);  // the one that the root waits with
    const auto next = group.members[0]->next_announcement(kPatience);
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error(), kCause.on_rank(2));
  });
  std::jthread aborting([&] {
    ASSERT_TRUE(group.members[1]->next_announcement(kPatience));
    group.members[1]->abort(kCause);
  });
  const auto replies = group.root->exchange(Begin{.sequence = 1}, kPatience);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error(), kCause.on_rank(2));
}

TEST(GroupAbort, TheFirstCauseWinsOnEachRank) {
  JoinedGroup group = make_joined_group(2);
  group.root->abort(kCause);
  group.root->abort(Error(Code::kBadInput, "too late"));
  EXPECT_EQ(wait_failure(*group.members[0]), kCause.on_rank(0));
  group.members[0]->abort(Error(Code::kBadInput, "too late"));
  EXPECT_EQ(group.root->failure(), kCause.on_rank(0));
  EXPECT_EQ(group.members[0]->failure(), kCause.on_rank(0));
  EXPECT_EQ(wait_failure(*group.members[1]), kCause.on_rank(0));
}

TEST(GroupAbort, IsFlushedWhenItsRankEndsAtOnce) {
  JoinedGroup group = make_joined_group(2);
  group.members[0]->abort(kCause);
  group.members[0].reset();
  EXPECT_EQ(wait_failure(*group.root), kCause.on_rank(1));
  EXPECT_EQ(wait_failure(*group.members[1]), kCause.on_rank(1));
}

TEST(GroupEpoch, AfterAFailureTheNextEpochWorks) {
  JoinedGroup group = make_joined_group(2);
  for (uint64_t epoch = 2; epoch < 6; ++epoch) {
    group.members[1]->abort(kCause);
    for (const auto& member : group.members) EXPECT_EQ(wait_failure(*member), kCause.on_rank(2));
    EXPECT_EQ(wait_failure(*group.root), kCause.on_rank(2));
    ASSERT_TRUE(group.root->renew());
    EXPECT_EQ(group.root->epoch(), epoch);
    std::jthread members([&] {
      for (const auto& member : group.members) {
        ASSERT_TRUE(member->renew());
        EXPECT_FALSE(member->failure());
        answer<Link>(*member, Linked{epoch});
      }
    });
    const auto replies = group.root->exchange(Link{epoch}, kPatience);
    ASSERT_TRUE(replies) << replies.error().message();
    EXPECT_EQ(*replies, (std::vector<Reply>{Linked{epoch}, Linked{epoch}}));
  }
}

TEST(GroupEpoch, AnAnnouncementOfTheNextEpochWaitsForRenew) {
  JoinedGroup group = make_joined_group(1);
  Group& member = *group.members[0];
  group.root->abort(kCause);
  EXPECT_EQ(wait_failure(member), kCause.on_rank(0));
  ASSERT_TRUE(group.root->renew());
  std::jthread root([&] {
    const auto replies = group.root->exchange(Link{2}, kPatience);
    ASSERT_TRUE(replies) << replies.error().message();
  });
  const auto early = member.next_announcement(Duration(50));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error(), kCause.on_rank(0));
  ASSERT_TRUE(member.renew());
  answer<Link>(member, Linked{2});
}

TEST(GroupEpoch, AnAbortOfAMemberThatIsAheadFailsTheRootsNextEpoch) {
  JoinedGroup group = make_joined_group(1);
  Group& member = *group.members[0];
  member.abort(kCause);
  EXPECT_EQ(wait_failure(*group.root), kCause.on_rank(1));
  ASSERT_TRUE(member.renew());
  const Error second(Code::kBadInput, "again");
  member.abort(second);
  EXPECT_EQ(group.root->failure(), kCause.on_rank(1));
  ASSERT_TRUE(group.root->renew());
  EXPECT_EQ(wait_failure(*group.root), second.on_rank(1));
}

TEST(GroupEpoch, RenewWithoutAFailureChangesNothing) {
  JoinedGroup group = make_joined_group(1);
  ASSERT_TRUE(group.root->renew());
  ASSERT_TRUE(group.members[0]->renew());
  EXPECT_EQ(group.root->epoch(), 1u);
  EXPECT_EQ(group.members[0]->epoch(), 1u);
}

TEST(GroupEpoch, AReplyToTheOldEpochIsDropped) {
  JoinedGroup group = make_joined_group(1);
  Group& member = *group.members[0];
  ASSERT_FALSE(group.root->exchange(Begin{.sequence = 1}, Duration(10)));
  ASSERT_TRUE(member.next_announcement(kPatience));
  group.root->abort(kCause);
  EXPECT_EQ(wait_failure(member), kCause.on_rank(0));
  ASSERT_TRUE(member.renew());
  member.reply(Ready{1});
  ASSERT_TRUE(group.root->renew());
  std::jthread members([&] { answer<Link>(member, Linked{2}); });
  const auto replies = group.root->exchange(Link{2}, kPatience);
  ASSERT_TRUE(replies) << replies.error().message();
  EXPECT_EQ(replies->at(0), Reply(Linked{2}));
}

TEST(GroupLeave, OfTheRootEndsTheWaitOfMembers) {
  JoinedGroup group = make_joined_group(2);
  std::jthread waiting([&] {
    const auto announcement = group.members[0]->next_announcement(kPatience);
    ASSERT_FALSE(announcement);
    EXPECT_EQ(announcement.error().code(), Code::kPeerLost);
    EXPECT_EQ(announcement.error().message(), "the root has left the session");
    EXPECT_FALSE(group.members[0]->renew());
  });
  group.root.reset();
}

TEST(GroupLeave, OfAMemberIsNoFailureUntilItIsNeeded) {
  JoinedGroup group = make_joined_group(2);
  group.members[1].reset();
  std::jthread member([&] {
    const auto announcement = group.members[0]->next_announcement(kPatience);
    if (announcement) {
      EXPECT_THAT(wait_failure(*group.members[0]).message(), HasSubstr("has left the session"));
    }
  });
  const auto replies = group.root->exchange(Begin{.sequence = 1}, kPatience);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code(), Code::kPeerLost);
  EXPECT_EQ(replies.error().rank(), 2);
  EXPECT_THAT(replies.error().message(), HasSubstr("rank 2 (host"));
  EXPECT_THAT(replies.error().message(), HasSubstr("has left the session"));
  EXPECT_FALSE(group.root->renew());
}

TEST(GroupSurvivors, ALostRankIsAnErrorAmongTheRepliesAndTheOthersCommit) {
  JoinedGroup group = make_joined_group(3);
  std::jthread members([&] {
    ASSERT_TRUE(group.members[1]->next_announcement(kPatience));
    group.members[1].reset();
    answer<Commit>(*group.members[0], Committed{5});
    answer<Commit>(*group.members[2], Committed{5});
  });
  const auto replies = group.root->exchange_with_survivors(Commit{.sequence = 5}, kPatience);
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0], Reply(Committed{5}));
  ASSERT_FALSE(replies[1]);
  EXPECT_EQ(replies[1].error().rank(), 2);
  EXPECT_EQ(replies[2], Reply(Committed{5}));
}

TEST(GroupSurvivors, AnAbortAmongThemIsAFailureOnlyAfterwards) {
  JoinedGroup group = make_joined_group(2);
  std::jthread members([&] {
    ASSERT_TRUE(group.members[0]->next_announcement(kPatience));
    group.members[0]->abort(kCause);
    answer<Commit>(*group.members[1], Committed{5});
  });
  const auto replies = group.root->exchange_with_survivors(Commit{.sequence = 5}, kPatience);
  ASSERT_FALSE(replies[0]);
  EXPECT_EQ(replies[0].error(), kCause.on_rank(1));
  EXPECT_EQ(replies[1], Reply(Committed{5}));
  EXPECT_EQ(wait_failure(*group.members[1]), kCause.on_rank(1));
  EXPECT_EQ(group.root->failure(), kCause.on_rank(1));
}

TEST(GroupSurvivors, AFailureBeforeMeansThatNobodyCommits) {
  JoinedGroup group = make_joined_group(2);
  group.root->abort(kCause);
  const auto replies = group.root->exchange_with_survivors(Commit{.sequence = 5}, kPatience);
  ASSERT_EQ(replies.size(), 2u);
  for (const auto& reply : replies) EXPECT_EQ(reply.error(), kCause.on_rank(0));
}

TEST(GroupSurvivors, ACommitThatArrivedBeforeAFailureIsStillSeen) {
  JoinedGroup group = make_joined_group(1);
  Group& member = *group.members[0];
  // Waits for nobody, so that the failure follows the commit at once.
  const auto replies = group.root->exchange_with_survivors(Commit{.sequence = 5}, Duration(0));
  EXPECT_FALSE(replies.at(0));
  group.root->abort(kCause);
  EXPECT_EQ(wait_failure(member), kCause.on_rank(0));
  const auto commit = member.next_announcement(kPatience);
  ASSERT_TRUE(commit);
  EXPECT_EQ(std::get<Commit>(*commit).sequence, 5u);
  const auto after = member.next_announcement(kPatience);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error(), kCause.on_rank(0));
}

TEST(GroupWrongSide, CallsOfTheOtherSideAreErrors) {
  JoinedGroup group = make_joined_group(1);
  EXPECT_EQ(group.root->next_announcement(kPatience).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(group.members[0]->gather(kPatience).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(group.members[0]->exchange(Link{}, kPatience).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weightcast
