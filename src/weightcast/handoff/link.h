// The Unix socket between a rank and the leader of its host: proves that both are on one host,
// carries descriptors, and its hang-up says that a rank is gone.
// One thread, the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weightcast/base/deadline.h"
#include "weightcast/base/fd.h"
#include "weightcast/base/result.h"

namespace weightcast {

inline constexpr size_t kLinkTokenSize = 32;
inline constexpr size_t kMaxLinkMessageSize = 4096;
inline constexpr size_t kMaxLinkFds = 8;

/// Listens on an abstract socket of a random name. Strangers who connect are dropped with one log
/// line and can not hold up those who know the token.
class LinkListener {
 public:
  static Result<LinkListener> create();

  [[nodiscard]] const std::string& name() const {
    return name_;
  }  ///< without the leading zero byte
  [[nodiscard]] const std::string& token() const {
    return token_;
  }  ///< `kLinkTokenSize` random bytes

  /// Blocks until `num_links` ranks 1, 2, … have connected; element i is the link of rank i + 1.
  /// `failure_fd` readable ends the wait early with `kPeerLost`. Errors: `kDeadline` naming who is
  /// missing. Ranks that are on another host just never come.
  Result<std::vector<Fd>> accept_all(int num_links, int failure_fd, Deadline deadline);

 private:
  LinkListener(Fd fd, std::string name, std::string token)
      : fd_(std::move(fd)), name_(std::move(name)), token_(std::move(token)) {}
  Fd fd_;
  std::string name_;
  std::string token_;
};

/// Connects `rank` to the listener. Errors: `kUnsupported` when nobody listens under that name
/// here, which means that the leader is on another host; `kRefused` when the token or the rank was
/// not accepted, or once `failure_fd`, if it is a descriptor, is readable: the caller then knows
/// the cause; `kDeadline` when the leader did not answer.
Result<Fd> connect_link(const std::string& name, const std::string& token, int rank,
                        Deadline deadline, int failure_fd = -1);

struct LinkMessage {
  std::vector<std::byte> bytes;
  std::vector<Fd> fds;
};
/// Sends one message of at most `kMaxLinkMessageSize` bytes, not empty, and `kMaxLinkFds`
/// descriptors. Does not block. Errors: `kPeerLost` on hang-up, or when the peer has left many
/// messages unread.
Status send_message(const Fd& link, std::span<const std::byte> bytes, std::span<const int> fds);
/// Receives one message. Errors: `kPeerLost` on hang-up or when `failure_fd` (-1: none) is
/// readable, `kDeadline`, `kCorruption` (too large, too many descriptors), `kNoResource` (own
/// descriptors).
Result<LinkMessage> receive_message(const Fd& link, int failure_fd, Deadline deadline);

}  // namespace weightcast
