// Messages, headers and tickets of random values within the limits, the same for the same seed.
// One thread.
#pragma once

#include <random>

#include "weightcast/control/ticket.h"
#include "weightcast/control/wire.h"

namespace weightcast::testing {

using Random = std::mt19937_64;

/// A message of kind `index` modulo the number of kinds.
Message random_message(Random& random, size_t index);
BucketHeader random_header(Random& random);
Ticket random_ticket(Random& random);

/// `bytes` with a few of them changed, cut off, or added.
std::vector<std::byte> mutated(std::vector<std::byte> bytes, Random& random);

}  // namespace weightcast::testing
