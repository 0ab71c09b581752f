// The ranks of one session: who they are, announcements in one order, replies, losses.
// A control thread of its own owns every ZeroMQ socket; it never blocks. All members below are
// thread-safe unless they say otherwise; those that wait block the caller, never the control
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/result.h"
#include "weightcast/control/messages.h"
#include "weightcast/control/ticket.h"

namespace weightcast {

struct HostGroupOptions {
  std::string listen = "tcp://127.0.0.1:0";  ///< port 0: a free one; 0.0.0.0 or [::]: every address
  int world_size = 2;                        ///< the root included
  GroupConfig config;                        ///< told to every member in its welcome
};

struct JoinGroupOptions {
  Ticket ticket;
  int wanted_rank = -1;  ///< -1: any
  /// How long to keep trying to reach the root, and then to wait without a new member arriving.
  Duration timeout{60'000};
  /// Asked again whenever the root does not answer or refuses the key: a newer ticket, or nothing.
  std::function<std::optional<Ticket>()> reread_ticket;
};

/// One rank's membership. Rank 0, the root, hosts the group; all others join it.
///
/// Failure: the first of (an `abort` by any rank, a lost rank, a message out of order) becomes the
/// group's `failure()` for this epoch on every rank, makes `failure_fd()` readable and every
/// waiting call return it. A lost rank is for ever; after any other failure `renew` starts the next
/// epoch. Errors name the rank, its host and the step it was lost in.
class Group {
 public:
  /// Root: binds and listens. Does not wait for anybody. Errors: `kRefused` when the address is
  /// taken, `kInvalidArgument`.
  static Result<std::unique_ptr<Group>> host(const HostGroupOptions& options);
  /// Member: finds the root, joins, and returns when all ranks have. Blocks up to the timeout.
  /// Errors: `kRefused` (ticket, rank, protocol, group already complete), `kDeadline`, `kPeerLost`.
  static Result<std::unique_ptr<Group>> join(const JoinGroupOptions& options);

  /// Says `leave` to the others, flushes for up to a second and ends the control thread.
  virtual ~Group() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;
  [[nodiscard]] virtual uint64_t epoch() const = 0;
  /// Root: of everybody, by rank, after `gather`. Member: itself and the root.
  [[nodiscard]] virtual std::vector<PeerInfo> peers() const = 0;
  /// What the root decided. Root: its own options.
  [[nodiscard]] virtual const GroupConfig& config() const = 0;

  /// Root: the ticket, with the real port. Requires: rank 0.
  [[nodiscard]] virtual const Ticket& ticket() const = 0;
  /// Root: waits until all members said hello and were welcomed. `patience`: how long nobody new
  /// may arrive. Errors: `kDeadline` with how many are missing, `kPeerLost`.
  virtual Status gather(Duration patience) = 0;

  /// Root: sends `announcement` to every member and waits for one reply from each, in rank order
  /// from rank 1. `patience`: how long no rank may reply or report progress. Errors: the failure of
  /// the group; `kDeadline` naming the ranks that are missing (the caller then aborts).
  virtual Result<std::vector<Reply>> exchange(const Announcement& announcement,
                                              Duration patience) = 0;
  /// Root: like `exchange`, but goes on with whoever is left: a lost rank's reply is its error.
  /// For the steps after the point of no return.
  virtual std::vector<Result<Reply>> exchange_with_survivors(const Announcement& announcement,
                                                             Duration patience) = 0;
  /// Member: the next announcement. `patience`: how long the root may neither announce nor report
  /// progress. Errors: the failure of the group; `kPeerLost` when the root has left; `kDeadline`.
  virtual Result<Announcement> next_announcement(Duration patience) = 0;
  /// Member: answers the last announcement. Does not block.
  virtual void reply(const Reply& reply) = 0;

  /// Makes `cause` the failure of this epoch on every rank, unless there is one already. Its rank
  /// is set to this one's. Does not block.
  virtual void abort(const Error& cause) = 0;
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  /// Readable while there is a failure. Valid as long as the group.
  [[nodiscard]] virtual int failure_fd() const = 0;
  /// Goes to the next epoch after a failure; each rank calls it before its next version. Errors:
  /// the failure itself when a rank was lost or has left.
  virtual Status renew() = 0;

  /// Tells the others that this rank is alive and moving: resets their patience.
  virtual void note_progress() = 0;
  /// When another rank last replied, announced or reported progress of its own; the time of joining
  /// before that. Waits for shared memory measure their patience from it. Does not block.
  [[nodiscard]] virtual Clock::time_point last_progress() const = 0;
  /// What this rank is doing, for messages about losses. Requires: a literal.
  virtual void set_step(const char* step) = 0;
  /// From now on a hang-up of the socket `fd` means that `rank` is lost. The group keeps a
  /// duplicate of its own.
  virtual Status watch(int fd, int rank) = 0;
};

}  // namespace weightcast
