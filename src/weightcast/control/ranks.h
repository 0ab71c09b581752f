// Small rules of the protocol that both sides share.
// Pure functions, any thread.
#pragma once

#include <optional>
#include <vector>

#include "weightcast/control/wire.h"

namespace weightcast {

/// The ranks of members in order of arrival: what they want, and for those that want nothing (-1)
/// the lowest of 1, 2, … that nobody wants. Requires: no rank is wanted twice or is out of range.
std::vector<int> assign_ranks(const std::vector<int>& wanted);

/// The body as a reply or an announcement, or nothing if it is none.
std::optional<Reply> reply_from(const Body& body);
std::optional<Announcement> announcement_from(const Body& body);

Body body_from(const Reply& reply);
Body body_from(const Announcement& announcement);

}  // namespace weightcast
