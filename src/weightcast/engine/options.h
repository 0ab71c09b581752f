// What a session can be told.
// Values: copyable, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "weightcast/base/deadline.h"
#include "weightcast/base/size.h"
#include "weightcast/plan/dtype.h"

namespace weightcast {

/// For the rank that hosts the session, rank 0.
struct HostOptions {
  std::string listen = "tcp://127.0.0.1:0";  ///< port 0: a free one, which the ticket carries
  int num_receivers = 1;
  uint64_t bucket_size = 64 * kMiB;
  /// Digest every byte on every rank and compare. Off: only names, dtypes, shapes and counts.
  bool checksum = true;
  /// Floating tensors wider than this travel as this. F32, F16 or BF16.
  std::optional<DType> cast;
  /// Pack the next bucket while the last one moves. Off: one at a time, to compare and to debug.
  bool overlap = true;
  std::string backend = "host";
  Duration timeout{60'000};            ///< how long nothing may move before the version fails
  Duration heartbeat_timeout{10'000};  ///< how long a rank may be silent before it is lost
};

/// For every other rank.
struct JoinOptions {
  std::string ticket;
  std::optional<int> rank;  ///< wanted; else by arrival
  Duration timeout{60'000};
  /// Asked for a newer ticket while the root cannot be reached; may be empty.
  std::function<std::optional<std::string>()> reread_ticket;
};

}  // namespace weightcast
