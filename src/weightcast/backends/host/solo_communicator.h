// The communicator of one rank: what a session runs through when all its ranks share a host, so
// that one path serves every topology.
// One thread, but for `abort`.
#pragma once

#include <memory>

#include "weightcast/comm/communicator.h"

namespace weightcast {

/// Errors: `kInvalidArgument`; `kUnsupported` when there is another rank to reach.
Result<std::unique_ptr<Communicator>> create_solo_communicator(const CommConfig& config);

}  // namespace weightcast
