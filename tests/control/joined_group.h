// A group whose ranks are objects of one process.
// One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weightcast/control/group.h"

namespace weightcast::testing {

inline constexpr Duration kPatience{60'000};  ///< longer than any machine needs

struct JoinedGroup {
  std::unique_ptr<Group> root;
  std::vector<std::unique_ptr<Group>> members;  ///< by rank - 1
};

/// The options of a group of `num_members` on a free port of the loopback.
HostGroupOptions host_options(int num_members);
/// Joins with `ticket`, patient, wanting `wanted_rank`.
JoinGroupOptions join_options(const Ticket& ticket, int wanted_rank = -1);
/// A whole group. Aborts the test program when it does not come about.
JoinedGroup make_joined_group(const HostGroupOptions& options);
inline JoinedGroup make_joined_group(int num_members) {
  return make_joined_group(host_options(num_members));
}

/// Waits until `group` has failed and returns why; a group that does not fail is an error too.
Error wait_failure(const Group& group);

}  // namespace weightcast::testing
