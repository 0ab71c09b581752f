#include "weightcast/control/messages.h"

#include <fmt/format.h>

namespace weightcast {

std::string describe(const PeerInfo& peer) {
  if (peer.rank < 0) return fmt::format("a member (host {}, pid {})", peer.host, peer.pid);
  return fmt::format("rank {} (host {}, pid {})", peer.rank, peer.host, peer.pid);
}

}  // namespace weightcast
