// Messages to bytes and back. Bytes from outside are verified against the schema (wire.fbs) and
// against the limits of docs/wire.md before anything is made of them.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/control/messages.h"
#include "weightcast/plan/bucket.h"

namespace weightcast {

/// No control message is larger; a version whose metas would not fit is refused by its sender.
inline constexpr size_t kMaxMessageSize = 256u << 20;

struct Heartbeat {
  uint64_t progress = 0;  ///< grows whenever the sender of this message moved something
  Duration timeout{0};    ///< from the root: how long a rank may be silent; else 0
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
struct Refusal {
  Code code = Code::kRefused;
  std::string text;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
/// The first cause of a failure, on its way to everybody.
struct Abort {
  uint64_t epoch = 0;
  Error cause;
  bool lost = false;  ///< a rank is gone for good: no epoch follows
  friend bool operator==(const Abort&, const Abort&) = default;
};
/// An orderly end: the sender of this message will be gone, and that is no loss.
struct Leave {
  friend bool operator==(const Leave&, const Leave&) = default;
};

/// Everything that travels on the control plane.
using Body = std::variant<Hello, Welcome, Refusal, Heartbeat, Abort, Leave, Link, Begin, End,
                          Commit, Linked, Ready, Done, Committed>;
struct Message {
  uint64_t number = 0;  ///< 1, 2, … from one peer to another; a gap means that one was lost
  uint64_t epoch = 0;
  Body body;
  uint64_t answers = 0;  ///< in a reply: the number of the announcement that it answers
  friend bool operator==(const Message&, const Message&) = default;
};

/// Texts longer than the limits are cut, and bytes that are not UTF-8 become `?`.
std::vector<std::byte> encode(const Message& message);
/// At least as many bytes as `body` takes when it is encoded, for checks before it is.
size_t encoded_size_bound(const Body& body);
/// Gives encoded bytes of a message another number, so that one encoding serves many peers.
/// Requires: `bytes` come from `encode`.
void renumber(std::span<std::byte> bytes, uint64_t number);
/// Errors: `kCorruption`; `kRefused` for another protocol version.
Result<Message> decode_message(std::span<const std::byte> bytes);

/// Encodes into `destination` without allocating more than the builder's own buffer and returns the
/// size. Requires: `destination` has `kMaxHeaderSize` bytes, which the packer's limits suffice for.
size_t encode(const BucketHeader& header, std::span<std::byte> destination);
/// Decodes a copy of bytes that another process wrote. Errors: `kCorruption`.
Result<BucketHeader> decode_bucket_header(std::span<const std::byte> bytes);

}  // namespace weightcast
