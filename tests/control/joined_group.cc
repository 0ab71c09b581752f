#include "joined_group.h"

#include <array>
#include <thread>

#include "weightcast/base/check.h"
#include "weightcast/base/fd.h"

namespace weightcast::testing {

HostGroupOptions host_options(int num_members) {
  HostGroupOptions options;
  options.world_size = num_members + 1;
  options.config.bucket_size = 1 << 20;
  options.config.num_slots = 2;
  options.config.backend = "host";
  options.config.link_name = "link";
  options.config.link_token = std::string(32, 't');
  return options;
}

JoinGroupOptions join_options(const Ticket& ticket, int wanted_rank) {
  JoinGroupOptions options;
  options.ticket = ticket;
  options.wanted_rank = wanted_rank;
  options.timeout = kPatience;
  return options;
}

JoinedGroup make_joined_group(const HostGroupOptions& options) {
  auto root = Group::host(options);
  WEIGHTCAST_CHECK(root.has_value());
  JoinedGroup joined;
  joined.root = *std::move(root);
  joined.members.resize(static_cast<size_t>(options.world_size - 1));
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < options.world_size; ++rank) {
      threads.emplace_back([&, rank] {
        auto member = Group::join(join_options(joined.root->ticket(), rank));
        WEIGHTCAST_CHECK(member.has_value());
        joined.members[static_cast<size_t>(rank - 1)] = *std::move(member);
      });
    }
  }
  WEIGHTCAST_CHECK(joined.root->gather(kPatience).has_value());
  return joined;
}

Error wait_failure(const Group& group) {
  const std::array<int, 1> fds = {group.failure_fd()};
  const auto ready = wait_readable(fds, Deadline::after(kPatience));
  if (!ready) return ready.error();
  return group.failure().value_or(Error(Code::kInternal, "signalled without a failure"));
}

}  // namespace weightcast::testing
