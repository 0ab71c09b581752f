#include "weightcast/control/host_control.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "weightcast/base/log.h"
#include "weightcast/base/size.h"
#include "weightcast/control/peer_info.h"
#include "weightcast/control/ranks.h"

namespace weightcast {
namespace {

using std::chrono::milliseconds;

constexpr int kLeaveLingerMs = 1000;
// A connection's last messages, which say why it ends, may become visible just after the event of
// its end. A link hangs up at once, while the last messages still have to be deciphered.
constexpr Clock::duration kCloseGrace = milliseconds(50);
constexpr Clock::duration kHangUpGrace = milliseconds(400);
// Messages of a later epoch that one member may have waiting; it sends a few at most.
constexpr size_t kMaxHeld = 100;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

HostControl::HostControl(HostSockets sockets, const HostGroupOptions& options, HostState& state)
    : sockets_(std::move(sockets)),
      options_(options),
      state_(state),
      interval_(heartbeat_interval(options.config.heartbeat_timeout)),
      self_(local_peer(0)),
      gathered_(options.world_size == 1),
      next_heartbeat_(Clock::now() + interval_) {}

std::vector<int> HostControl::fds() const {
  return {sockets_.router.fd(), sockets_.zap.fd(), sockets_.monitor.fd()};
}

bool HostControl::drain(std::span<const pollfd> polled) {
  bool any = false;
  if (std::exchange(sent_since_drain_, false) || polled[0].revents != 0) {
    while (auto frames = sockets_.router.receive()) {
      any = true;
      take_message(std::move(*frames));
    }
  }
  if (polled[1].revents != 0) any = sockets_.zap.drain() || any;
  if (polled[2].revents != 0) drain_monitor();
  return any;
}

void HostControl::drain_monitor() {
  while (const auto event = sockets_.monitor.next()) {
    if (event->kind == ZMQ_EVENT_ACCEPTED) open_fds_.insert(event->value);
    if (event->kind != ZMQ_EVENT_DISCONNECTED) continue;
    open_fds_.erase(event->value);
    for (const auto& member : members_) {
      if (member->fd == event->value) closes(*member, kCloseGrace);
    }
  }
}

HostControl::Member* HostControl::find(const std::string& routing_id) {
  const auto found = by_routing_id_.find(routing_id);
  return found == by_routing_id_.end() ? nullptr : found->second;
}

void HostControl::take_message(std::vector<ZmqFrame> frames) {
  std::string routing_id(frames.front().text());
  Member* member = find(routing_id);
  if (member != nullptr && member->gone) return;
  Result<Message> message = frames.size() == 2 ? decode_message(frames.back().bytes())
                                               : Error(Code::kCorruption, "not one frame");
  if (member == nullptr) return greet(std::move(routing_id), frames.back().source_fd(), message);
  if (!message)
    return lose(*member, "a message from it is malformed: " + message.error().message());
  take_from(*member, *std::move(message));
}

void HostControl::greet(std::string routing_id, int fd, const Result<Message>& message) {
  if (!message && message.error().code() == Code::kRefused) {
    return refuse(routing_id, {Code::kRefused, message.error().message()});
  }
  const Hello* hello = message ? std::get_if<Hello>(&message->body) : nullptr;
  if (hello == nullptr || message->number != 1) {
    return log_message(LogLevel::kInfo, "a message of somebody who has not joined was ignored");
  }
  // Whoever has hung up already is not waited for. Descriptors are used again, so that only the
  // events up to now say whose this is.
  drain_monitor();
  if (!open_fds_.contains(fd)) return;
  for (const auto& other : members_) {
    if (other->fd == fd && !other->gone) lose(*other, "its connection closed");
  }
  if (const auto refusal = why_refused(*hello)) return refuse(routing_id, *refusal);
  auto member = std::make_unique<Member>();
  member->routing_id = routing_id;
  member->fd = fd;
  member->info = hello->peer;
  member->info.rank = -1;
  member->wanted_rank = hello->wanted_rank;
  member->received = 1;
  member->heard_at = Clock::now();
  Member& added = *members_.emplace_back(std::move(member));
  by_routing_id_[std::move(routing_id)] = &added;
  state_.arrived();
  say_alive();
  if (members_.size() + 1 == static_cast<size_t>(options_.world_size)) assign_ranks();
}

std::optional<Refusal> HostControl::why_refused(const Hello& hello) const {
  if (const auto failure = state_.failure(); failure && !gathered_) {
    return Refusal{failure->code(), "the group has failed: " + failure->message()};
  }
  const int wanted = hello.wanted_rank;
  if (wanted != -1 && (wanted < 1 || wanted >= options_.world_size)) {
    return Refusal{Code::kRefused,
                   fmt::format("rank {} is not one of 1 to {}", wanted, options_.world_size - 1)};
  }
  for (const auto& member : members_) {
    const int taken = member->info.rank > 0 ? member->info.rank : member->wanted_rank;
    if (wanted == -1 || taken != wanted) continue;
    return Refusal{Code::kRefused, fmt::format("rank {} is taken by host {}, pid {}", wanted,
                                               member->info.host, member->info.pid)};
  }
  if (members_.size() + 1 < static_cast<size_t>(options_.world_size)) return std::nullopt;
  return Refusal{
      Code::kRefused,
      fmt::format("the group is complete: all of its {} ranks have joined", options_.world_size)};
}

void HostControl::refuse(const std::string& routing_id, const Refusal& refusal) {
  log_message(LogLevel::kWarn, "a member was refused: " + refusal.text);
  const auto bytes = encode(Message{.number = 1, .epoch = epoch_, .body = refusal});
  sent_since_drain_ = true;
  // Nobody waits for its delivery: whoever is refused may be gone.
  if (sockets_.router.send(bytes_of(routing_id), true) == 0) sockets_.router.send(bytes, false);
}

void HostControl::assign_ranks() {
  std::vector<int> wanted;
  for (const auto& member : members_) wanted.push_back(member->wanted_rank);
  const std::vector<int> ranks = weightcast::assign_ranks(wanted);
  std::vector<PeerInfo> peers(members_.size() + 1);
  peers[0] = self_;
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i]->info.rank = ranks[i];
    peers[static_cast<size_t>(ranks[i])] = members_[i]->info;
  }
  gathered_ = true;
  state_.gathered(std::move(peers));
  for (const auto& member : members_) {
    send(*member, Welcome{.rank = member->info.rank,
                          .world_size = options_.world_size,
                          .root = self_,
                          .config = options_.config});
  }
}

void HostControl::take_from(Member& member, Message message) {
  if (message.number != member.received + 1) return lose(member, "messages from it were lost");
  member.received = message.number;
  member.heard_at = Clock::now();
  if (const auto* heartbeat = std::get_if<Heartbeat>(&message.body)) {
    if (heartbeat->progress != member.progress) state_.progressed(member.info.rank);
    member.progress = heartbeat->progress;
  } else if (std::holds_alternative<Leave>(message.body)) {
    send(member, Leave{});  // the answer it waits for
    member.gone = true;
    state_.left(
        Error(Code::kPeerLost, describe(member.info) + " has left the session", member.info.rank));
  } else if (message.epoch > epoch_) {
    if (member.held.size() >= kMaxHeld) return lose(member, "it is out of step");
    member.held.push_back(std::move(message));
  } else if (message.epoch == epoch_) {
    take_of_epoch(member, message);
  }
}

void HostControl::take_of_epoch(Member& member, const Message& message) {
  if (const auto* abort = std::get_if<Abort>(&message.body)) {
    return state_.aborted(member.info.rank, *abort);
  }
  const auto reply = reply_from(message.body);
  if (!reply || !gathered_) return lose(member, "it sent what no member sends");
  if (message.answers != member.announced) return;
  state_.replied(member.exchange, member.info.rank, *reply);
  exchanged_at_ = Clock::now();
}

void HostControl::run(Command command) {
  if (const auto* announcement = std::get_if<Announce>(&command)) return announce(*announcement);
  if (const auto* epoch = std::get_if<NewEpoch>(&command)) return begin_epoch(epoch->epoch);
  if (const auto* spread = std::get_if<Spread>(&command)) {
    // To those who were lost as well: one that was only stopped learns so that it is out.
    for (const auto& member : members_) send(*member, spread->abort);
  }
  if (std::holds_alternative<TellProgress>(command)) say_alive();
}

void HostControl::announce(const Announce& announcement) {
  for (const auto& member : members_) {
    if (member->gone) continue;
    member->announced = member->sent + 1;
    member->exchange = announcement.exchange;
    send_bytes(*member, announcement.bytes);
  }
  exchanged_at_ = Clock::now();
}

void HostControl::begin_epoch(uint64_t epoch) {
  epoch_ = epoch;
  for (const auto& member : members_) {
    for (const Message& message : std::exchange(member->held, {})) {
      if (message.epoch > epoch_) member->held.push_back(message);
      if (message.epoch == epoch_ && !member->gone) take_of_epoch(*member, message);
    }
  }
}

Clock::time_point HostControl::due() const {
  Clock::time_point due = next_heartbeat_;
  for (const auto& member : members_) {
    if (member->lost_at && !member->gone) due = std::min(due, *member->lost_at);
  }
  return due;
}

void HostControl::tick(Clock::time_point now) {
  for (const auto& member : members_) {
    if (!member->gone && member->lost_at && now >= *member->lost_at) {
      lose(*member, "its connection closed");
    }
  }
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + interval_;
  say_alive();
  for (const auto& member : members_) {
    if (!member->gone && now - member->heard_at > options_.config.heartbeat_timeout) {
      lose(*member, "it sent nothing for " + format_duration(options_.config.heartbeat_timeout));
    }
  }
}

void HostControl::say_alive() {
  const Heartbeat heartbeat{state_.progress(), options_.config.heartbeat_timeout};
  for (const auto& member : members_) {
    if (!member->gone) send(*member, heartbeat);
  }
}

void HostControl::resumed(Clock::duration pause) {
  for (const auto& member : members_) member->heard_at += pause;
}

void HostControl::hung_up(int rank) {
  for (const auto& member : members_) {
    if (member->info.rank == rank) closes(*member, kHangUpGrace);
  }
}

void HostControl::closes(Member& member, Clock::duration grace) {
  const Clock::time_point lost_at = Clock::now() + grace;
  member.lost_at = std::min(member.lost_at.value_or(lost_at), lost_at);
}

void HostControl::send(Member& member, Body body) {
  send_bytes(member, encode(Message{.epoch = epoch_, .body = std::move(body)}));
}

void HostControl::send_bytes(Member& member, std::vector<std::byte> bytes) {
  renumber(bytes, ++member.sent);
  sent_since_drain_ = true;
  int error = sockets_.router.send(bytes_of(member.routing_id), true);
  if (error == 0) error = sockets_.router.send(bytes, false);
  if (error == 0 || member.gone) return;
  if (error == EHOSTUNREACH) return closes(member, kCloseGrace);
  lose(member, error == EAGAIN ? "it takes no messages" : ::zmq_strerror(error));
}

void HostControl::lose(Member& member, const std::string& why) {
  if (member.gone) return;
  member.gone = true;
  state_.lost(
      Error(Code::kPeerLost,
            fmt::format("{} was lost while {}: {}", describe(member.info), state_.step(), why),
            member.info.rank));
}

void HostControl::leave() {
  for (const auto& member : members_) {
    if (!member->gone) send(*member, Leave{});
  }
  sockets_.router.set(ZMQ_LINGER, kLeaveLingerMs);
}

bool HostControl::left() const {
  return std::ranges::all_of(members_, [](const auto& member) {
    return member->gone || (member->lost_at && Clock::now() >= *member->lost_at);
  });
}

}  // namespace weightcast
