#include "weightcast/control/member_control.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>

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
constexpr size_t kMaxHeld = 100;
// Until the root's first heartbeat tells its timeout: often enough for any, patient with all.
constexpr Duration kFirstTimeout{10'000};
constexpr Clock::duration kFirstInterval = milliseconds(20);

}  // namespace

MemberControl::MemberControl(Connection connection, int wanted_rank, MemberState& state)
    : connection_(std::move(connection)),
      state_(state),
      timeout_(kFirstTimeout),
      interval_(kFirstInterval),
      next_heartbeat_(Clock::now() + interval_),
      heard_at_(Clock::now()) {
  root_.rank = 0;
  send(Hello{.wanted_rank = wanted_rank, .peer = local_peer(-1)});
}

std::vector<int> MemberControl::fds() const {
  return {connection_.socket.fd(), connection_.monitor.fd()};
}

bool MemberControl::drain(std::span<const pollfd> polled) {
  bool any = false;
  if (std::exchange(sent_since_drain_, false) || polled[0].revents != 0) {
    while (const auto frames = connection_.socket.receive()) {
      any = true;
      take_message(*frames);
    }
  }
  if (polled[1].revents != 0) drain_monitor();
  return any;
}

void MemberControl::drain_monitor() {
  while (const auto event = connection_.monitor.next()) {
    if (event->kind == ZMQ_EVENT_DISCONNECTED) closes(kCloseGrace);
  }
}

void MemberControl::take_message(const std::vector<ZmqFrame>& frames) {
  if (root_gone_) return;
  Result<Message> message = frames.size() == 1 ? decode_message(frames.front().bytes())
                                               : Error(Code::kCorruption, "not one frame");
  if (message) return take(*std::move(message));
  if (!welcomed_ && message.error().code() == Code::kRefused) {
    root_gone_ = true;
    return state_.refused(message.error().context("the root"));
  }
  lose("a message from it is malformed: " + message.error().message());
}

void MemberControl::take(Message message) {
  if (message.number != received_ + 1) return lose("messages from it were lost");
  received_ = message.number;
  heard_at_ = Clock::now();
  if (const auto* heartbeat = std::get_if<Heartbeat>(&message.body)) {
    take_heartbeat(*heartbeat);
  } else if (const auto* welcome = std::get_if<Welcome>(&message.body)) {
    if (welcomed_) return lose("it sent a second welcome");
    welcomed_ = true;
    root_ = welcome->root;
    set_timeout(welcome->config.heartbeat_timeout);
    state_.welcomed(*welcome);
  } else if (const auto* refusal = std::get_if<Refusal>(&message.body)) {
    root_gone_ = true;
    state_.refused(Error(refusal->code, refusal->text, 0));
  } else if (std::holds_alternative<Leave>(message.body)) {
    send(Leave{});  // the answer it waits for
    root_gone_ = true;
    state_.left(Error(Code::kPeerLost, "the root has left the session", 0));
  } else if (const auto* abort = std::get_if<Abort>(&message.body); abort && abort->lost) {
    state_.aborted(*abort);
  } else if (message.epoch > epoch_) {
    if (held_.size() >= kMaxHeld) return lose("it is out of step");
    held_.push_back(std::move(message));
  } else if (message.epoch == epoch_) {
    take_of_epoch(std::move(message));
  }
}

void MemberControl::take_of_epoch(Message message) {
  if (const auto* abort = std::get_if<Abort>(&message.body)) return state_.aborted(*abort);
  auto announcement = announcement_from(message.body);
  if (!announcement || !welcomed_) return lose("it sent what no root sends");
  state_.announced(message.epoch, message.number, *std::move(announcement));
  exchanged_at_ = Clock::now();
}

void MemberControl::take_heartbeat(const Heartbeat& heartbeat) {
  if (!welcomed_ && heartbeat.timeout > Duration(0)) set_timeout(heartbeat.timeout);
  if (heartbeat.progress != root_progress_) state_.progressed();
  root_progress_ = heartbeat.progress;
}

void MemberControl::set_timeout(Duration timeout) {
  timeout_ = timeout;
  interval_ = heartbeat_interval(timeout);
  next_heartbeat_ = std::min(next_heartbeat_, Clock::now() + interval_);
}

void MemberControl::run(Command command) {
  if (auto* answer = std::get_if<Answer>(&command)) {
    // A reply of an epoch that is over is nobody's.
    if (answer->epoch == epoch_) send(body_from(answer->reply), answer->answers);
    exchanged_at_ = Clock::now();
  } else if (auto* spread = std::get_if<Spread>(&command)) {
    send(spread->abort);
  } else if (const auto* epoch = std::get_if<NewEpoch>(&command)) {
    begin_epoch(epoch->epoch);
  } else if (std::holds_alternative<TellProgress>(command)) {
    send(Heartbeat{.progress = state_.progress()});
  }
}

void MemberControl::begin_epoch(uint64_t epoch) {
  epoch_ = epoch;
  for (Message& message : std::exchange(held_, {})) {
    if (message.epoch > epoch_) {
      held_.push_back(std::move(message));
    } else if (message.epoch == epoch_ && !root_gone_) {
      take_of_epoch(std::move(message));
    }
  }
}

Clock::time_point MemberControl::due() const {
  if (root_gone_ || !lost_at_) return next_heartbeat_;
  return std::min(next_heartbeat_, *lost_at_);
}

void MemberControl::tick(Clock::time_point now) {
  if (!root_gone_ && lost_at_ && now >= *lost_at_) lose("its connection closed");
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + interval_;
  send(Heartbeat{.progress = state_.progress()});
  if (now - heard_at_ > timeout_) lose("it sent nothing for " + format_duration(timeout_));
}

void MemberControl::resumed(Clock::duration pause) { heard_at_ += pause; }

void MemberControl::hung_up(int rank) {
  if (rank == 0) closes(kHangUpGrace);
}

void MemberControl::closes(Clock::duration grace) {
  const Clock::time_point lost_at = Clock::now() + grace;
  lost_at_ = std::min(lost_at_.value_or(lost_at), lost_at);
}

void MemberControl::send(Body body, uint64_t answers) {
  if (root_gone_) return;
  sent_since_drain_ = true;
  const auto bytes = encode(Message{++sent_, epoch_, std::move(body), answers});
  const int error = connection_.socket.send(bytes, false);
  if (error == 0) return;
  // With ZMQ_IMMEDIATE there is no queue without a connection (zmq_setsockopt(3)).
  if (error == EAGAIN) return closes(kCloseGrace);
  lose(::zmq_strerror(error));
}

void MemberControl::lose(const std::string& why) {
  if (root_gone_) return;
  root_gone_ = true;
  const std::string name = welcomed_ ? describe(root_) : "the root";
  state_.lost(
      Error(Code::kPeerLost, fmt::format("{} was lost while {}: {}", name, state_.step(), why), 0));
}

void MemberControl::leave() {
  send(Leave{});
  connection_.socket.set(ZMQ_LINGER, kLeaveLingerMs);
}

}  // namespace weightcast
