// Who this process is, for the other ranks.
// Thread-safe.
#pragma once

#include "weightcast/control/messages.h"

namespace weightcast {

/// This process, with `rank` as its rank.
PeerInfo local_peer(int rank);

}  // namespace weightcast
