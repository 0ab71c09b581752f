#include "weightcast/control/ranks.h"

#include <set>
#include <type_traits>

namespace weightcast {
namespace {

template <typename Variant>
std::optional<Variant> narrow(const Body& body) {
  return std::visit(
      [](const auto& value) -> std::optional<Variant> {
        if constexpr (std::is_constructible_v<Variant, decltype(value)>) return Variant(value);
        return std::nullopt;
      },
      body);
}

template <typename Variant>
Body widen(const Variant& variant) {
  return std::visit([](const auto& value) { return Body(value); }, variant);
}

}  // namespace

std::vector<int> assign_ranks(const std::vector<int>& wanted) {
  const std::set<int> taken(wanted.begin(), wanted.end());
  std::vector<int> ranks = wanted;
  int next = 1;
  for (int& rank : ranks) {
    if (rank != -1) continue;
    while (taken.contains(next)) ++next;
    rank = next++;
  }
  return ranks;
}

std::optional<Reply> reply_from(const Body& body) { return narrow<Reply>(body); }
std::optional<Announcement> announcement_from(const Body& body) {
  return narrow<Announcement>(body);
}
Body body_from(const Reply& reply) { return widen(reply); }
Body body_from(const Announcement& announcement) { return widen(announcement); }

}  // namespace weightcast
