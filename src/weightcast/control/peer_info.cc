#include "weightcast/control/peer_info.h"

#include <array>
#include <fstream>

#include <unistd.h>

#include "weightcast/control/clean_text.h"
#include "weightcast/control/limits.h"

namespace weightcast {

PeerInfo local_peer(int rank) {
  PeerInfo peer;
  peer.rank = rank;
  peer.pid = ::getpid();
  std::array<char, kMaxHostSize + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) peer.host = host.data();
  std::ifstream boot_id("/proc/sys/kernel/random/boot_id");
  std::getline(boot_id, peer.boot_id);
  peer.host = clean_text(peer.host, kMaxHostSize);
  peer.boot_id = clean_text(peer.boot_id, kMaxBootIdSize);
  return peer;
}

}  // namespace weightcast
