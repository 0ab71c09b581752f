// A member's side of the protocol: says hello, takes announcements, sends replies, notices the
// loss of the root.
// The control thread's.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "weightcast/control/connector.h"
#include "weightcast/control/control_thread.h"
#include "weightcast/control/member_state.h"

namespace weightcast {

class MemberControl final : public ControlRole {
 public:
  /// `connection` has passed the handshake. `state` outlives it.
  MemberControl(Connection connection, int wanted_rank, MemberState& state);

  [[nodiscard]] std::vector<int> fds() const override;
  bool drain(std::span<const pollfd> polled) override;
  void run(Command command) override;
  [[nodiscard]] Clock::time_point exchanged_at() const override { return exchanged_at_; }
  [[nodiscard]] Clock::time_point due() const override;
  void tick(Clock::time_point now) override;
  void resumed(Clock::duration pause) override;
  void hung_up(int rank) override;
  void leave() override;
  [[nodiscard]] bool left() const override { return root_gone_; }

 private:
  void drain_monitor();
  void take_message(const std::vector<ZmqFrame>& frames);
  void take(Message message);
  void take_of_epoch(Message message);
  void take_heartbeat(const Heartbeat& heartbeat);
  void begin_epoch(uint64_t epoch);
  void send(Body body, uint64_t answers = 0);
  void closes(Clock::duration grace);
  void lose(const std::string& why);
  void set_timeout(Duration timeout);

  Connection connection_;
  MemberState& state_;
  PeerInfo root_;  ///< unknown but for its rank before the welcome
  bool sent_since_drain_ = false;
  bool welcomed_ = false;
  bool root_gone_ = false;  ///< lost, or has left
  uint64_t epoch_ = 1;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  uint64_t root_progress_ = 0;
  Duration timeout_;
  Clock::duration interval_;
  Clock::time_point next_heartbeat_;
  Clock::time_point exchanged_at_;
  Clock::time_point heard_at_;
  std::optional<Clock::time_point> lost_at_;  ///< its connection ended: when it counts as lost
  std::deque<Message> held_;                  ///< of an epoch that this rank has not begun
};

}  // namespace weightcast
