// What ranks tell each other, as plain values. wire.h encodes and decodes them; docs/wire.md is the
// protocol.
// Values: copyable, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/hash.h"
#include "weightcast/base/result.h"
#include "weightcast/plan/digest.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr int kMaxWorldSize = 65536;

/// Where a rank lives, for messages to people.
struct PeerInfo {
  int rank = -1;
  std::string host;     ///< host name
  std::string boot_id;  ///< /proc/sys/kernel/random/boot_id
  int64_t pid = 0;
  friend bool operator==(const PeerInfo&, const PeerInfo&) = default;
};
/// `rank 2 (host node7, pid 4711)`.
std::string describe(const PeerInfo& peer);

/// A member asks to join.
struct Hello {
  uint32_t protocol = kProtocolVersion;
  int wanted_rank = -1;  ///< -1: any
  PeerInfo peer;
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// What the root decided for the whole group, told to each member that joins.
struct GroupConfig {
  uint64_t bucket_size = 0;
  uint32_t num_slots = 0;
  bool checksum = true;
  Duration heartbeat_timeout{10'000};
  std::string backend;     ///< name of the row of the backend table
  std::string link_name;   ///< abstract Unix socket of the root, without the leading zero byte
  std::string link_token;  ///< secret that opens it, 32 bytes
  friend bool operator==(const GroupConfig&, const GroupConfig&) = default;
};

/// The answer to a hello once everybody is there.
struct Welcome {
  int rank = -1;
  int world_size = 0;
  PeerInfo root;
  GroupConfig config;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

/// How long a rank packed, waited and moved during one version.
struct RankStats {
  int rank = -1;
  std::string host;
  double pack_seconds = 0;  ///< copying tensors into slots (root)
  double wait_seconds = 0;  ///< for a free slot (root), for a filled one (others)
  double move_seconds = 0;  ///< on the communicator (root), out of slots (others)
  uint64_t tensors = 0;
  uint64_t bytes = 0;             ///< payload without padding
  uint64_t peak_extra_bytes = 0;  ///< most memory beyond the tensors, shared memory included
  friend bool operator==(const RankStats&, const RankStats&) = default;
};

// Announcements: from the root to every member, in one order.

/// A new epoch: memory comes over the members' links.
struct Link {
  uint64_t epoch = 0;
  friend bool operator==(const Link&, const Link&) = default;
};
enum class MetasKnown : uint8_t {
  kNo,         ///< bucket headers bring them
  kAttached,   ///< `Begin::metas` has all of them
  kUnchanged,  ///< the same as in the last version that brought them; `metas_digest` says which
};
struct Begin {
  uint64_t sequence = 0;  ///< counts attempts over the life of the group, from 1
  uint64_t version = 0;   ///< the caller's label
  MetasKnown metas_known = MetasKnown::kNo;
  std::vector<TensorMeta> metas;
  Hash128 metas_digest;
  friend bool operator==(const Begin&, const Begin&) = default;
};
struct End {
  uint64_t sequence = 0;
  uint64_t buckets = 0;
  uint64_t tensors = 0;
  uint64_t bytes = 0;
  DigestKind digest_kind = DigestKind::kBytes;
  Hash128 digest;
  friend bool operator==(const End&, const End&) = default;
};
struct Commit {
  uint64_t sequence = 0;
  std::vector<RankStats> ranks;  ///< of every rank, root first
  double seconds = 0;            ///< the root's, from the first push to the last done
  uint64_t bytes_on_wire = 0;
  friend bool operator==(const Commit&, const Commit&) = default;
};
using Announcement = std::variant<Link, Begin, End, Commit>;

// Replies: one from each member to each announcement.

struct Linked {
  uint64_t epoch = 0;
  friend bool operator==(const Linked&, const Linked&) = default;
};
struct Ready {
  uint64_t sequence = 0;
  friend bool operator==(const Ready&, const Ready&) = default;
};
struct Done {
  uint64_t sequence = 0;
  RankStats stats;
  Hash128 digest;
  friend bool operator==(const Done&, const Done&) = default;
};
struct Committed {
  uint64_t sequence = 0;
  friend bool operator==(const Committed&, const Committed&) = default;
};
using Reply = std::variant<Linked, Ready, Done, Committed>;

}  // namespace weightcast
