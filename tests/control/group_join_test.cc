#include <thread>

#include <gtest/gtest.h>

#include "weightcast/control/group.h"

namespace weightcast {
namespace {

TEST(GroupJoin, OneMemberJoinsAndAnswers) {
  HostGroupOptions options;
  options.config.bucket_size = 1 << 20;
  auto root = Group::host(options);
  ASSERT_TRUE(root) << root.error().message();
  std::jthread member([&] {
    auto group = Group::join({.ticket = (*root)->ticket()});
    ASSERT_TRUE(group) << group.error().message();
    EXPECT_EQ((*group)->rank(), 1);
    auto next = (*group)->next_announcement(Duration(5000));
    ASSERT_TRUE(next) << next.error().message();
    (*group)->reply(Ready{std::get<Begin>(*next).sequence});
    EXPECT_FALSE((*group)->next_announcement(Duration(5000)));
  });
  ASSERT_TRUE((*root)->gather(Duration(5000)));
  auto replies = (*root)->exchange(Begin{.sequence = 7}, Duration(5000));
  ASSERT_TRUE(replies) << replies.error().message();
  EXPECT_EQ(std::get<Ready>(replies->at(0)).sequence, 7u);
  root->reset();
}

}  // namespace
}  // namespace weightcast
