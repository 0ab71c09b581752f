// One announcement of the root and the reply of one member, through the engine's control plane:
// two processes, CURVE, schema-checked messages, control threads and all.
#include <cstdlib>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "bench/common/ranks.h"
#include "bench/common/round_trip.h"
#include "weightcast/base/size.h"
#include "weightcast/control/group.h"

namespace weightcast::bench {
namespace {

constexpr Duration kPatience{3'600'000};  // between samples the harness measures the other side

Status reply_for_ever(const std::string& text) {
  WEIGHTCAST_ASSIGN(Ticket ticket, decode_ticket(text));
  WEIGHTCAST_ASSIGN(auto group, Group::join({.ticket = ticket, .reread_ticket = {}}));
  for (;;) {
    const auto announcement = group->next_announcement(kPatience);
    if (!announcement) return {};  // the root has left
    group->reply(Ready{.sequence = std::get<Begin>(*announcement).sequence});
  }
}

// A begin whose only tensor has a name that fills the message up.
Begin make_question() {
  return {.sequence = 0,
          .version = 1,
          .metas_known = MetasKnown::kAttached,
          .metas = {{std::string(kRoundTripSize / 2, 'w'), DType::kBf16, {4096}}},
          .metas_digest = {}};
}

Status run() {
  WEIGHTCAST_ASSIGN(Letter letter, Letter::create());
  WEIGHTCAST_ASSIGN(Ranks ranks, Ranks::fork(1, [&](int) {
                      return reply_for_ever(letter.receive()) ? EXIT_SUCCESS : EXIT_FAILURE;
                    }));
  const GroupConfig config{.bucket_size = 64 * kMiB,
                           .num_slots = 2,
                           .backend = "host",
                           .link_name = "bench",
                           .link_token = std::string(32, 'x')};
  WEIGHTCAST_ASSIGN(auto group, Group::host({.world_size = 2, .config = config}));
  letter.send(encode(group->ticket()));
  WEIGHTCAST_TRY(group->gather(Duration{10'000}));
  Begin question = make_question();
  const auto round_trip = [&]() -> Status {
    ++question.sequence;
    WEIGHTCAST_TRY(group->exchange(question, Duration{10'000}));
    return {};
  };
  WEIGHTCAST_TRY(round_trip());
  const int status =
      serve(make_ready(ranks.pids(), /*kernel=*/"", kRoundTripSize, /*verified=*/true),
            [&] { return measure_round_trips(ranks.pids(), round_trip); });
  group.reset();
  if (status != EXIT_SUCCESS || !ranks.join()) return Error(Code::kInternal, "a sample failed");
  return {};
}

}  // namespace
}  // namespace weightcast::bench

int main() {
  const auto status = weightcast::bench::run();
  if (status) return EXIT_SUCCESS;
  std::cerr << status.error().message() << '\n';
  return EXIT_FAILURE;
}
