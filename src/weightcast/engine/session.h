// The public face: a group of ranks over many versions of the weights.
// One thread a session: the thread that opened it. Two more run inside (docs/threads.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/hash.h"
#include "weightcast/base/result.h"
#include "weightcast/control/messages.h"
#include "weightcast/device/device.h"
#include "weightcast/engine/options.h"
#include "weightcast/pipeline/lease.h"
#include "weightcast/pipeline/tensor_reader.h"
#include "weightcast/plan/digest.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

/// What one version cost, as the root measured it and told everybody at commit.
struct TransferStats {
  uint64_t version = 0;
  uint64_t tensors = 0;
  uint64_t bytes = 0;  ///< payload, without padding
  uint64_t buckets = 0;
  uint64_t bytes_on_wire = 0;  ///< through the communicator, padding and headers included
  double seconds = 0;          ///< from the first byte packed to the last rank's `done`
  DigestKind digest_kind = DigestKind::kBytes;
  Hash128 digest;                ///< the one that all ranks agreed on
  std::vector<RankStats> ranks;  ///< by rank
  /// Ranks lost after the point of no return: the version is committed on all others.
  std::vector<Error> lost;
};

/// One version on its way out. Destroyed before `finish` returned, it aborts the version.
class Sender {
 public:
  virtual ~Sender() = default;
  /// Packs one tensor of `source.size()` = `byte_size(meta)` bytes, contiguous. With a host stream
  /// the source is free when the call returns; with a device stream, after an event recorded behind
  /// it. Blocks while every slot is in flight. Errors: `kBadInput` (name twice, size, not what was
  /// announced), or the failure of the group; the version is then lost on every rank.
  virtual Status push(const TensorMeta& meta, ConstMemoryView source) = 0;
  /// The same from a reader, which is called on this thread, in order, before the call returns.
  virtual Status push(const TensorMeta& meta, TensorReader& reader) = 0;
  /// Ends the version: returns when every rank has checked and committed it. Errors: the version is
  /// committed nowhere.
  virtual Result<TransferStats> finish() = 0;
};

/// One version on its way in. Destroyed before `finish` returned, it aborts the version.
///
/// `next` first tells the root that this rank is ready; it blocks up to the session's timeout
/// without progress, and its errors include the failure of the group.
class Receiver : public PieceReader {
 public:
  [[nodiscard]] virtual uint64_t version() const = 0;
  /// Whether the root announced every tensor in advance, so that `metas()` is complete at once.
  [[nodiscard]] virtual bool metas_announced() const = 0;

  /// Ends the version. Checks that everything announced was received and taken, agrees with all
  /// ranks on the digest, and calls `apply` when every rank holds the version: make the new weights
  /// visible there. Returns after `apply`. Errors before that: the old version stays on every rank.
  virtual Result<TransferStats> finish(const std::function<Status()>& apply) = 0;
};

class Session {
 public:
  /// Rank 0: binds and returns before anybody joined, so that the ticket can be given out.
  static Result<std::unique_ptr<Session>> host(const HostOptions& options);
  /// Every other rank: blocks until all ranks have joined.
  static Result<std::unique_ptr<Session>> join(const JoinOptions& options);

  /// Leaves the group in order. Requires: no sender, receiver or lease of it is alive, and no other
  /// thread calls `abort`.
  virtual ~Session() = default;

  /// Rank 0: the text of the ticket. Requires: rank 0.
  [[nodiscard]] virtual const std::string& ticket() const = 0;
  /// Rank 0: blocks until all ranks have joined. `begin_send` does it too.
  virtual Status wait_for_ranks() = 0;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;
  [[nodiscard]] virtual std::vector<PeerInfo> peers() const = 0;

  /// Rank 0: starts a version. `metas`, where the source knows them, are what will be pushed, in
  /// order and as the source has them, before any cast. Blocks until every rank is ready. After a
  /// failed version it starts a new epoch. Errors: `kInvalidArgument` on another rank, while
  /// another version is open, or for a name that comes twice; `kPeerLost`; `kDeadline`.
  virtual Result<std::unique_ptr<Sender>> begin_send(
      uint64_t version, std::optional<std::vector<TensorMeta>> metas) = 0;
  /// Every other rank: blocks until the root begins a version, up to `patience` (absent: the
  /// session's timeout). Errors: `kInvalidArgument` on rank 0 or while another version is open;
  /// `kPeerLost` when the root has left; `kDeadline`.
  virtual Result<std::unique_ptr<Receiver>> begin_receive(
      std::optional<Duration> patience = std::nullopt) = 0;

  /// Ends the current version on every rank with `cause` as the reason. Does not block. Any thread.
  virtual void abort(const Error& cause) = 0;
};

}  // namespace weightcast
